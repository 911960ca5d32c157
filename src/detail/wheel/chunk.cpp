// L1 wheel: the pool of chunks.
#include <asio_wheel/detail/wheel/chunk.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace asio_wheel::detail {

tick wheel_entry::due() const noexcept
{
  return at_.due;
}

const void* wheel_entry::cell() const noexcept
{
  return at_.cell;
}

chunk* chunk::of(const void* cell) noexcept
{
  return reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(cell) &
                                  ~std::uintptr_t{sizeof(chunk) - 1});
}

void chunk_queue::push_back(chunk& c) noexcept
{
  c.prev = tail;
  c.next = nullptr;
  (tail ? tail->next : head) = &c;
  tail = &c;
  peak = std::max(peak, ++length);
}

void chunk_queue::unlink(chunk& c) noexcept
{
  (c.prev ? c.prev->next : head) = c.next;
  (c.next ? c.next->prev : tail) = c.prev;
  --length;
}

void chunk_queue::splice_back(chunk_queue& other) noexcept
{
  if (!other.head) return;
  other.head->prev = tail;
  (tail ? tail->next : head) = other.head;
  tail = other.tail;
  length += other.length;
  other = {};
}

chunk_pool::~chunk_pool()
{
  // Of each page the first chunk stands for the page, which goes when all chunks are out of the
  // list.
  free_blocks pages;
  while (free_block* const b = free_.pop_front()) {
    if (reinterpret_cast<std::uintptr_t>(b) % page_size == 0) pages.push_front(*b);
  }
  while (free_block* const page = pages.pop_front()) pages_.give_back(page);
  pages_.forgo(promised_);
}

void chunk_pool::reserve(std::size_t n)
{
  if (n > capacity_) grow(n);
}

void chunk_pool::grow(std::size_t n)
{
  const std::size_t more = std::max(n - capacity_, capacity_);
  const std::size_t pages = (more + chunks_of_page - 1) / chunks_of_page;
  pages_.promise(pages);
  promised_ += pages;
  capacity_ += pages * chunks_of_page;
}

void chunk_pool::take_page() noexcept
{
  free_.cut(pages_.take_promised(), sizeof(chunk));
  --promised_;
}

chunk& chunk_pool::take(std::uint32_t slot) noexcept
{
  free_block* b = free_.pop_front();
  if (!b) {
    take_page();
    b = free_.pop_front();
  }
  chunk& c = *::new (b) chunk;
  ++taken_;
  c.slot = slot;
  c.used = 0;
  c.marked = false;
  c.live = 0;
  return c;
}

void chunk_pool::give_back(chunk& c) noexcept
{
  free_.push_front(*::new (&c) free_block);
  --taken_;
}

free_blocks chunk_pool::take_free()
{
  const std::size_t pages = (free_.size() + chunks_of_page - 1) / chunks_of_page;
  pages_.promise(pages);
  promised_ += pages;
  capacity_ += pages * chunks_of_page - free_.size();
  return std::exchange(free_, {});
}

void chunk_pool::add_free(free_blocks& chunks) noexcept
{
  const std::size_t pages = std::min(promised_, chunks.size() / chunks_of_page);
  pages_.forgo(pages);
  promised_ -= pages;
  capacity_ += chunks.size() - pages * chunks_of_page;
  free_.splice_front(chunks);
}

}  // namespace asio_wheel::detail
