// L2 engine: in which shard the next wait is due.
#include "due_shards.hpp"

#include <algorithm>

namespace asio_wheel::detail {

void due_shards::add(shard& sh) noexcept
{
  const std::uint64_t bit = std::uint64_t{1} << sh.number;
  if ((is_here_ & bit) != 0) return;
  is_here_ |= bit;
  heap_[size_++] = {{}, &sh};
  if (size_ > 1) std::push_heap(heap_.data(), heap_.data() + size_, comes_later);
}

bool due_shards::lock_first(shard*& first) noexcept
{
  while (size_ != 0) {
    first = heap_[0].at;
    shard& sh = *first;
    sh.lock();
    // A cancelled wait must not take its shard ahead of others.
    const cancels_applied applied = sh.apply_deferred_cancels();
    if (!sh.has_due(applied)) {
      drop_first();
    } else {
      if (size_ == 1) return true;
      source now{sh.first_due(applied), &sh};
      if (!shards_.has_strays()) now.first.sequence = 0;  // by tick alone: before its waits
      if (!comes_later(now, heap_[1]) && (size_ == 2 || !comes_later(now, heap_[2]))) return true;
      std::pop_heap(heap_.data(), heap_.data() + size_, comes_later);
      heap_[size_ - 1] = now;
      std::push_heap(heap_.data(), heap_.data() + size_, comes_later);
    }
    sh.unlock();
  }
  return false;
}

void due_shards::drop_first() noexcept
{
  if (size_ > 1) std::pop_heap(heap_.data(), heap_.data() + size_, comes_later);
  is_here_ &= ~(std::uint64_t{1} << heap_[--size_].at->number);
}

void due_shards::rewound() noexcept
{
  for (std::size_t i = 0; i < size_; ++i) heap_[i].first = {};
}

}  // namespace asio_wheel::detail
