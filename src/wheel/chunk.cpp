// L1 wheel: chunk queues and the pool behind them.
#include <asio_wheel/wheel/chunk.hpp>

#include <asio_wheel/ground/huge_pages.hpp>

#include <algorithm>
#include <utility>

namespace asio_wheel {

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

void chunk_pool::grow(std::size_t n)
{
  constexpr std::size_t smallest_slab = 64;
  const std::size_t size = std::max({n - capacity_, capacity_, smallest_slab});
  slabs_.push_back({std::make_unique_for_overwrite<chunk[]>(size), size});
  prefer_huge_pages(slabs_.back().chunks.get(), size * sizeof(chunk));
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
      fresh_ = s.chunks.get();
      fresh_end_ = fresh_ + s.size;
    }
    c = fresh_++;
  }
  ++taken_;
  c->slot = slot;
  c->used = 0;
  c->live = 0;
  return *c;
}

void chunk_pool::give_back(chunk& c) noexcept
{
  c.next = free_;
  free_ = &c;
  --taken_;
}

}  // namespace asio_wheel
