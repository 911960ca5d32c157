// L1 wheel: the pool of chunks.
#include "chunk.hpp"

#include <algorithm>
#include <new>

namespace asio_wheel::detail {

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

namespace {
constexpr std::size_t chunk_lines = sizeof(chunk) / block_unit;
constexpr std::size_t chunks_of_slab = slab_heap::blocks_of_slab(chunk_lines);
}  // namespace

void chunk_pool::grow(std::size_t n)
{
  slabs_.reserve((n + chunks_of_slab - 1) / chunks_of_slab);
  capacity_ = slabs_.slabs() * chunks_of_slab;
}

chunk& chunk_pool::take(std::uint32_t slot) noexcept
{
  void* const memory = spare_ ? static_cast<void*>(spare_) : slabs_.take(chunk_lines);
  spare_ = nullptr;
  chunk& c = *::new (memory) chunk;
  ++taken_;
  c.slot = slot;
  c.used = 0;
  c.marked = false;
  c.live = 0;
  return c;
}

void chunk_pool::give_back(chunk& c) noexcept
{
  --taken_;
  if (!spare_)
    spare_ = &c;
  else
    slabs_.give_back(&c);
}

}  // namespace asio_wheel::detail
