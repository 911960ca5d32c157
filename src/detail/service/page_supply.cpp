// L2 service: pages from operator new and back to the system.
#include <asio_wheel/detail/service/page_supply.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace asio_wheel::detail {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t largest_slab = (std::size_t{8} << 20) / page_size;

/// What a pending wait takes at most, if its handler is no larger than most: two cache lines, and
/// its share of a chunk that is a third full.
constexpr std::size_t bytes_of_wait = 160;

void* allocate_slab(std::size_t size)
{
  const bool large = size >= huge_page;
  void* const p = ::operator new (size, std::align_val_t{large ? huge_page : page_size});
#if defined(__linux__)
  if (large) madvise(p, size, MADV_HUGEPAGE);
#endif
  return p;
}

/// Lets the system take back the memory of these pages, which are zero from then on. Where it is
/// not known how, it stays.
void discard([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::byte* end) noexcept
{
#if defined(__linux__)
  // The system's pages may be larger than ours.
  const auto grain = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + grain - 1) / grain * grain;
  const auto last = reinterpret_cast<std::uintptr_t>(end) / grain * grain;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
#endif
}

}  // namespace

page_supply& page_supply::instance() noexcept
{
  // Never destroyed: a wheel in a static context outlives other statics.
  static page_supply& supply = *new page_supply;
  return supply;
}

void* page_supply::take()
{
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (available() > promised_) return used_.empty() ? pop_unused() : pop_used();
    }
    grow(1);
  }
}

void page_supply::promise(std::size_t n)
{
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (available() - promised_ >= n) {
        promised_ += n;
        return;
      }
    }
    grow(n);
  }
}

void page_supply::forgo(std::size_t n) noexcept
{
  const std::lock_guard lock(mutex_);
  promised_ -= n;
}

void* page_supply::take_promised() noexcept
{
  const std::lock_guard lock(mutex_);
  --promised_;
  return used_.empty() ? pop_unused() : pop_used();
}

void page_supply::give_back(void* page) noexcept
{
  const std::lock_guard lock(mutex_);
  used_.push_front(*::new (page) free_block);
  untaken_ = std::min(untaken_ + 1, reserved_);
}

void page_supply::reserve(std::size_t n)
{
  std::size_t more = 0;
  {
    const std::lock_guard lock(mutex_);
    more = untaken_ + n - std::min(untaken_ + n, used_.size());
  }
  promise(more);
  free_blocks pages;
  for (std::size_t i = 0; i < more; ++i) {
    void* page = nullptr;
    {
      const std::lock_guard lock(mutex_);
      page = unused_.empty() ? pop_used() : pop_unused();
    }
    pages.push_front(*::new (page) free_block);  // the first use of its memory
  }
  const std::lock_guard lock(mutex_);
  promised_ -= more;
  used_.splice_front(pages);
  reserved_ += n;
  untaken_ += n;
}

void page_supply::unreserve(std::size_t n) noexcept
{
  const std::lock_guard lock(mutex_);
  reserved_ -= n;
  untaken_ = std::min(untaken_, reserved_);
}

void page_supply::release()
{
  std::size_t n = 0;
  {
    const std::lock_guard lock(mutex_);
    n = used_.size();
  }
  promise(n);  // so that they are not missed while they are out
  free_blocks pages;
  std::size_t kept = 0;
  {
    const std::lock_guard lock(mutex_);
    pages = std::exchange(used_, {});
    while (pages.size() > n) used_.push_front(*pages.pop_front());
    kept = std::min(untaken_, pages.size());
  }
  free_blocks reserved;
  while (reserved.size() < kept) reserved.push_front(*pages.pop_front());
  {
    const std::lock_guard lock(mutex_);
    used_.splice_front(reserved);
  }
  free_blocks sorted = pages.take_pages(page_size);
  std::list<extent> found;
  try {
    while (!sorted.empty()) {
      extent& e = found.emplace_back();
      e.begin = reinterpret_cast<std::byte*>(sorted.pop_front());
      e.end = e.begin + page_size;
      while (reinterpret_cast<std::byte*>(sorted.front()) == e.end) {
        static_cast<void>(sorted.pop_front());
        e.end += page_size;
      }
      discard(e.begin, e.end);
    }
  } catch (const std::bad_alloc&) {
    // The rest stays as it is.
  }
  const std::lock_guard lock(mutex_);
  used_.splice_front(sorted);
  used_.splice_front(pages);
  for (const extent& e : found)
    unused_pages_ += static_cast<std::size_t>(e.end - e.begin) / page_size;
  unused_.splice(unused_.begin(), found);
  promised_ -= n;
}

void* page_supply::pop_used() noexcept
{
  if (untaken_ != 0) --untaken_;
  return used_.pop_front();
}

void* page_supply::pop_unused() noexcept
{
  extent& first = unused_.front();
  void* const page = first.begin;
  first.begin += page_size;
  if (first.begin == first.end) spent_.splice(spent_.begin(), unused_, unused_.begin());
  --unused_pages_;
  return page;
}

/// Adds a slab of `n` pages at least.
void page_supply::grow(std::size_t n)
{
  std::size_t pages = 0;
  std::list<extent> spent;  // whose memory goes when the lock has been released
  std::list<extent> slab(1);
  {
    const std::lock_guard lock(mutex_);
    pages = std::max(n, next_slab_);
    next_slab_ = std::min(2 * next_slab_, largest_slab);
    spent.swap(spent_);
  }
  if (pages > std::numeric_limits<std::size_t>::max() / page_size) throw std::bad_alloc();
  slab.front().begin = static_cast<std::byte*>(allocate_slab(pages * page_size));
  slab.front().end = slab.front().begin + pages * page_size;
  const std::lock_guard lock(mutex_);
  unused_.splice(unused_.end(), slab);
  unused_pages_ += pages;
}

reserved_memory::reserved_memory(std::size_t waits)
  : pages_(waits / (page_size / bytes_of_wait) + (waits != 0))
{
  if (pages_ != 0) page_supply::instance().reserve(pages_);
}

reserved_memory::~reserved_memory()
{
  if (pages_ != 0) page_supply::instance().unreserve(pages_);
}

}  // namespace asio_wheel::detail
