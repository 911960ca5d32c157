// L0 ground: cutting pages, putting them together again, and pages of zeroes.
#include <asio_wheel/detail/ground/memory.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#else
#include <cstdlib>
#endif

namespace asio_wheel::detail {
namespace {

std::uintptr_t page_of(const free_block* b) noexcept
{
  return reinterpret_cast<std::uintptr_t>(b) / page_size;
}

}  // namespace

void free_blocks::splice_front(free_blocks& other) noexcept
{
  if (other.empty()) return;
  if (first_)
    other.last_->next = first_;
  else
    last_ = other.last_;
  first_ = other.first_;
  size_ += other.size_;
  other = {};
}

void free_blocks::cut(void* page, std::size_t block_size) noexcept
{
  auto* const bytes = static_cast<std::byte*>(page);
  for (std::size_t i = page_size / block_size; i-- > 0;)
    push_front(*::new (bytes + i * block_size) free_block);
}

free_blocks free_blocks::take_pages(std::size_t block_size) noexcept
{
  std::vector<free_block*> all;
  try {
    all.reserve(size_);
  } catch (const std::bad_alloc&) {
    return {};
  }
  while (free_block* const b = pop_front()) all.push_back(b);
  std::sort(all.begin(), all.end());

  // From the back, so that the lists are in the order of their addresses.
  free_blocks pages;
  for (auto end = all.rbegin(); end != all.rend();) {
    const auto begin = std::find_if(
      end, all.rend(), [page = page_of(*end)](const free_block* b) { return page_of(b) != page; });
    if (static_cast<std::size_t>(begin - end) == page_size / block_size)
      pages.push_front(**std::prev(begin));
    else
      std::for_each(end, begin, [this](free_block* b) { push_front(*b); });
    end = begin;
  }
  return pages;
}

#if defined(__linux__)

// Not calloc, which may well write the zeroes itself.
void* map_zeroes(std::size_t bytes)
{
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

void unmap_zeroes::operator()(void* p) const noexcept
{
  munmap(p, bytes);
}

#else

void* map_zeroes(std::size_t bytes)
{
  void* const p = std::calloc(1, bytes);
  if (!p) throw std::bad_alloc();
  return p;
}

void unmap_zeroes::operator()(void* p) const noexcept
{
  std::free(p);
}

#endif

}  // namespace asio_wheel::detail
