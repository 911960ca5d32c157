// L2 service: finding the shard whose wait is due next.
#include <asio_wheel/detail/service/due_shards.hpp>

#include <algorithm>

namespace asio_wheel::detail {

void due_shards::add(home& h) noexcept
{
  const std::uint64_t bit = std::uint64_t{1} << h.number();
  if ((is_here_ & bit) != 0) return;
  is_here_ |= bit;
  heap_[size_++] = {{}, &h};
  if (size_ > 1) std::push_heap(heap_.data(), heap_.data() + size_, comes_later);
}

home* due_shards::lock_first() noexcept
{
  while (size_ != 0) {
    home& h = *heap_[0].at;
    h.lock();
    if (!h.has_due()) {
      drop_first();
    } else {
      if (size_ == 1) return &h;
      const source now{h.first_due(), &h};
      if (!comes_later(now, heap_[1]) && (size_ == 2 || !comes_later(now, heap_[2]))) return &h;
      std::pop_heap(heap_.data(), heap_.data() + size_, comes_later);
      heap_[size_ - 1] = now;
      std::push_heap(heap_.data(), heap_.data() + size_, comes_later);
    }
    h.unlock();
  }
  return nullptr;
}

void due_shards::drop_first() noexcept
{
  if (size_ > 1) std::pop_heap(heap_.data(), heap_.data() + size_, comes_later);
  is_here_ &= ~(std::uint64_t{1} << heap_[--size_].at->number());
}

}  // namespace asio_wheel::detail
