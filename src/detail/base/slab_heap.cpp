// L0 base: takes blocks, gives them back, and reuses or discards empty slabs.
#include "slab_heap.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace asio_wheel::detail {
namespace {

constexpr std::size_t most_slabs = 64;  ///< in a region: a bit each
constexpr std::size_t huge_page = most_slabs * slab_heap::slab_size;
static_assert(huge_page == std::size_t{2} << 20);

/// What other threads have returned to a slab. The high half is the line of the first block, the
/// low half the number of blocks. The highest bit of the low half is set once the heap has gone.
using returned = std::uint32_t;
constexpr returned heap_has_gone = 1u << 15;

constexpr std::size_t count_of(returned r) noexcept
{
  return r & (heap_has_gone - 1);
}

/// Lets the system take back the memory. It is zero from then on. Does nothing except on Linux.
void discard([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::byte* end) noexcept
{
#if defined(__linux__)
  // The system's pages may be larger than slabs.
  const auto grain = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + grain - 1) / grain * grain;
  const auto last = reinterpret_cast<std::uintptr_t>(end) / grain * grain;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
#endif
}

}  // namespace

/// Some slabs in a row. Describes them from outside, so that unused slabs take no memory.
struct slab_heap::region {
  std::size_t number;  ///< in its heap
  region* newer;
  std::byte* begin;
  std::size_t size;          ///< in slabs
  std::uint64_t in_use = 0;  ///< a bit for each slab
  std::uint64_t spare = 0;   ///< empty slabs that take memory

  /// Once the heap has gone: how many slabs have blocks out.
  std::atomic<std::size_t> left{0};

  [[nodiscard]] std::uint64_t all() const noexcept { return ~std::uint64_t{0} >> (64 - size); }
  [[nodiscard]] std::align_val_t alignment() const noexcept
  {
    return std::align_val_t{size == most_slabs ? huge_page : slab_size};
  }
  [[nodiscard]] slab& at(unsigned i) const noexcept;
};

/// The first line of a slab.
struct alignas(block_unit) slab_heap::slab {
  slab(slab_heap& heap, region& r, std::size_t size) noexcept
    : owner(&heap),
      parent(&r),
      lines(static_cast<std::uint16_t>(size)),
      capacity(static_cast<std::uint16_t>(blocks_of_slab(size)))
  {}

  [[nodiscard]] static slab& of(const void* p) noexcept
  {
    return *reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(p) & ~(slab_size - 1));
  }

  [[nodiscard]] bool has(const void* p) const noexcept
  {
    return (reinterpret_cast<std::uintptr_t>(p) ^ reinterpret_cast<std::uintptr_t>(this)) <
           slab_size;
  }

  [[nodiscard]] free_block* block_at(std::size_t line) noexcept
  {
    return line == 0 ? nullptr
                     : reinterpret_cast<free_block*>(reinterpret_cast<std::byte*>(this) +
                                                     line * block_unit);
  }

  std::atomic<slab_heap*> owner;  ///< null once the heap has gone
  region* const parent;
  slab* prev = nullptr;  ///< in the list of slabs with room
  slab* next = nullptr;
  free_block* free = nullptr;
  std::atomic<returned> back{0};
  const std::uint16_t lines;  ///< of a block
  const std::uint16_t capacity;
  std::uint16_t out = 0;    ///< blocks, also blocks that other threads have returned
  std::uint16_t fresh = 0;  ///< blocks that were out once, from the front
};
static_assert(slab_heap::slab_size / block_unit < heap_has_gone);

slab_heap::slab& slab_heap::region::at(unsigned i) const noexcept
{
  return slab::of(begin + i * slab_size);
}

// Blocks.

free_block* slab_heap::take(std::size_t lines)
{
  return take(lines, 1).first;
}

free_blocks slab_heap::take(std::size_t lines, std::size_t n)
{
  slab* s = with_room_[lines - 1];
  if (!s) s = &open(lines);
  free_blocks taken;
  if (s->free) {
    taken = {s->free, 1};
    free_block* last = s->free;
    for (; taken.size != n && last->next; ++taken.size) last = last->next;
    s->free = std::exchange(last->next, nullptr);
  } else {
    // Links them from the back, so that they are used in the order of their addresses.
    taken.size = std::min<std::size_t>(n, s->capacity - s->fresh);
    s->fresh = static_cast<std::uint16_t>(s->fresh + taken.size);
    for (std::size_t i = 0; i < taken.size; ++i)
      taken.first = ::new (s->block_at((s->fresh - i) * lines)) free_block{taken.first};
  }
  s->out = static_cast<std::uint16_t>(s->out + taken.size);
  if (s->out == s->capacity) unlink(*s);
  return taken;
}

void slab_heap::give_back(void* p) noexcept
{
  auto* const b = ::new (p) free_block;
  give_back(slab::of(p), *b, *b, 1);
}

/// Takes back blocks of a slab of this heap.
void slab_heap::give_back(slab& s, free_block& first, free_block& last, std::size_t n) noexcept
{
  last.next = s.free;
  s.free = &first;
  if (s.out == s.capacity) link(s);
  s.out = static_cast<std::uint16_t>(s.out - n);
  // The last slab with room stays, or it would come and go with each block.
  if (s.out == 0 && (s.prev || s.next)) close(s);
}

free_block* slab_heap::give_back_to_owners(free_block* first, std::size_t n) noexcept
{
  while (n != 0) {
    slab& s = slab::of(first);
    if (s.owner.load(std::memory_order_relaxed) != this) {
      return_block(std::exchange(first, first->next));
      --n;
      continue;
    }
    // Blocks that ended one after the other often lie in one slab.
    free_block* last = first;
    std::size_t left = n - 1;
    for (; left != 0 && s.has(last->next); --left) last = last->next;
    free_block* const next = last->next;
    give_back(s, *first, *last, n - left);
    first = next;
    n = left;
  }
  return first;
}

void slab_heap::return_block(void* p) noexcept
{
  slab& s = slab::of(p);
  auto* const b = ::new (p) free_block;
  const auto line =
    static_cast<returned>(static_cast<std::byte*>(p) - reinterpret_cast<std::byte*>(&s)) /
    static_cast<returned>(block_unit);
  // Once this block is back, the slab may be gone.
  region& r = *s.parent;
  const std::size_t capacity = s.capacity;
  returned before = s.back.load(std::memory_order_relaxed);
  returned after = 0;
  do {
    b->next = s.block_at(before >> 16);
    after = (line << 16) | ((before & 0xffff) + 1);
  } while (!s.back.compare_exchange_weak(before, after, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  if ((after & heap_has_gone) != 0 && count_of(after) == capacity) drop(r);
}

/// Takes in what other threads have returned to a slab.
void slab_heap::collect(slab& s) noexcept
{
  if (s.back.load(std::memory_order_relaxed) == 0) return;
  const returned r = s.back.exchange(0, std::memory_order_acquire);
  std::size_t n = count_of(r);
  // The last block may take the slab along.
  for (free_block* b = s.block_at(r >> 16); n != 0; --n) give_back(std::exchange(b, b->next));
}

/// Collects blocks that other threads have returned, from the next few slabs.
void slab_heap::collect_some() noexcept
{
  constexpr int some = 8;
  for (int i = 0; i < some; ++i) {
    if (!collect_from_) collect_from_ = oldest_;
    if (!collect_from_) return;
    const std::uint64_t rest = collect_from_->in_use >> collect_slab_;
    if (rest == 0) {
      collect_from_ = collect_from_->newer;
      collect_slab_ = 0;
      continue;
    }
    collect_slab_ += static_cast<unsigned>(std::countr_zero(rest));
    collect(collect_from_->at(collect_slab_));
    if (++collect_slab_ == most_slabs) {
      collect_from_ = collect_from_->newer;
      collect_slab_ = 0;
    }
  }
}

// Slabs.

void slab_heap::link(slab& s) noexcept
{
  slab*& first = with_room_[s.lines - 1u];
  s.prev = nullptr;
  s.next = first;
  if (first) first->prev = &s;
  first = &s;
}

void slab_heap::unlink(slab& s) noexcept
{
  (s.prev ? s.prev->next : with_room_[s.lines - 1u]) = s.next;
  if (s.next) s.next->prev = s.prev;
}

/// A slab with room: other threads have returned blocks to it, or it is empty.
slab_heap::slab& slab_heap::open(std::size_t lines)
{
  collect_some();
  if (slab* const s = with_room_[lines - 1]) return *s;
  if (spare_ + unused_ == 0) add_region();
  // The oldest region, so that a huge page is full before the next takes memory.
  while (first_free_->in_use == first_free_->all()) first_free_ = first_free_->newer;
  region* const r = first_free_;
  const std::uint64_t from = r->spare != 0 ? r->spare : ~r->in_use;
  const auto i = static_cast<unsigned>(std::countr_zero(from));
  const std::uint64_t bit = std::uint64_t{1} << i;
  --((r->spare & bit) != 0 ? spare_ : unused_);
  r->spare &= ~bit;
  r->in_use |= bit;
  ++in_use_;
  slab& s = *::new (&r->at(i)) slab(*this, *r, lines);
  link(s);
  return s;
}

void slab_heap::close(slab& s) noexcept
{
  constexpr std::size_t few = 8;
  unlink(s);
  region& r = *s.parent;
  const auto offset = static_cast<std::size_t>(reinterpret_cast<std::byte*>(&s) - r.begin);
  const std::uint64_t bit = std::uint64_t{1} << offset / slab_size;
  r.in_use &= ~bit;
  r.spare |= bit;
  --in_use_;
  ++spare_;
  if (r.number < first_free_->number) first_free_ = &r;
  if (spare_ <= in_use_ / 8 + few) return;
  // Discards several slabs at once if possible, which takes the system less time. Otherwise
  // discards what was spare before.
  if (r.in_use == 0 || std::popcount(r.spare) >= static_cast<int>(few)) return discard_spare(r);
  if (!discarded_next_) discarded_next_ = oldest_;
  discard_spare(*std::exchange(discarded_next_, discarded_next_->newer));
}

/// Also discards slabs that were never used, as they take memory in a huge page.
void slab_heap::discard_spare(region& r) noexcept
{
  const auto n = static_cast<std::size_t>(std::popcount(std::exchange(r.spare, 0)));
  if (n == 0) return;
  spare_ -= n;
  unused_ += n;
  for (std::uint64_t free = r.all() & ~r.in_use; free != 0;) {
    const auto begin = static_cast<unsigned>(std::countr_zero(free));
    const unsigned end = begin + static_cast<unsigned>(std::countr_one(free >> begin));
    discard(r.begin + begin * slab_size, r.begin + end * slab_size);
    free &= end < most_slabs ? ~std::uint64_t{0} << end : 0;
  }
}

// Regions.

void slab_heap::reserve(std::size_t n)
{
  while (slabs() < n) add_region();
}

void slab_heap::add_region()
{
  constexpr std::size_t smallest = 4;
  const std::size_t size = latest_ ? std::min(2 * latest_->size, most_slabs) : smallest;
  auto* const r = new region{latest_ ? latest_->number + 1 : 0, nullptr, nullptr, size};
  try {
    r->begin = static_cast<std::byte*>(::operator new(size* slab_size, r->alignment()));
  } catch (...) {
    delete r;
    throw;
  }
#if defined(__linux__)
  if (size == most_slabs) madvise(r->begin, huge_page, MADV_HUGEPAGE);
#endif
  (latest_ ? latest_->newer : oldest_) = r;
  latest_ = r;
  if (!first_free_) first_free_ = r;
  unused_ += size;
}

slab_heap::~slab_heap()
{
  while (oldest_) abandon(*std::exchange(oldest_, oldest_->newer));
}

/// Leaves a region to the threads that return its last blocks.
void slab_heap::abandon(region& r) noexcept
{
  r.left.store(1 + static_cast<std::size_t>(std::popcount(r.in_use)), std::memory_order_relaxed);
  for (std::uint64_t left = r.in_use; left != 0; left &= left - 1) {
    slab& s = r.at(static_cast<unsigned>(std::countr_zero(left)));
    s.owner.store(nullptr, std::memory_order_relaxed);
    const returned here = static_cast<returned>(s.capacity - s.out);
    const std::size_t capacity = s.capacity;
    const returned before = s.back.fetch_add(heap_has_gone + here, std::memory_order_acq_rel);
    if (count_of(before) + here == capacity) drop(r);
  }
  drop(r);
}

/// One slab fewer has blocks out.
void slab_heap::drop(region& r) noexcept
{
  if (r.left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  ::operator delete(r.begin, r.alignment());
  delete &r;
}

}  // namespace asio_wheel::detail
