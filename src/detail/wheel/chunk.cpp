// L1 wheel: chunk queues and the pool behind them.
#include <asio_wheel/detail/wheel/chunk.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace asio_wheel::detail {

void chunk_queue::push_back(chunk& c) noexcept
{
  c.prev = tail;
  c.next = nullptr;
  (tail ? tail->next : head) = &c;
  tail = &c;
}

void chunk_queue::unlink(chunk& c) noexcept
{
  (c.prev ? c.prev->next : head) = c.next;
  (c.next ? c.next->prev : tail) = c.prev;
}

void chunk_queue::splice_back(chunk_queue& other) noexcept
{
  if (other.empty()) return;
  other.head->prev = tail;
  (tail ? tail->next : head) = other.head;
  tail = other.tail;
  other = {};
}

chunk_pool::~chunk_pool()
{
  for (const slab& s : slabs_) memory_.deallocate(s.chunks, s.size * sizeof(chunk), alignof(chunk));
}

void chunk_pool::grow(std::size_t n)
{
  constexpr std::size_t smallest_slab = 64;
  const std::size_t size = std::max({n - capacity_, capacity_, smallest_slab});
  slabs_.reserve(slabs_.size() + 1);
  slabs_.push_back(
    {static_cast<chunk*>(memory_.allocate(size * sizeof(chunk), alignof(chunk))), size});
  capacity_ += size;
}

chunk& chunk_pool::take(std::uint32_t slot) noexcept
{
  chunk* c = free_;
  if (c) {
    free_ = c->next;
  } else {
    if (fresh_ == fresh_end_) {
      const slab& s = slabs_[next_slab_++];
      fresh_ = s.chunks;
      fresh_end_ = fresh_ + s.size;
    }
    c = ::new (fresh_++) chunk;
  }
  ++taken_;
  c->slot = slot;
  c->used = 0;
  c->marked = false;
  c->live = 0;
  return *c;
}

void chunk_pool::give_back(chunk& c) noexcept
{
  c.next = free_;
  free_ = &c;
  --taken_;
}

}  // namespace asio_wheel::detail
