// L2 service: finding the shard whose wait is due next.
#include <asio_wheel/detail/service/due_shards.hpp>

#include <algorithm>

namespace asio_wheel::detail {

void due_shards::add(home& h) noexcept
{
  const std::uint64_t bit = std::uint64_t{1} << h.number();
  if ((is_here_ & bit) != 0) return;
  is_here_ |= bit;
  push({{}, &h});
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
      pop();
      push(now);
    }
    h.unlock();
  }
  return nullptr;
}

void due_shards::drop_first() noexcept
{
  is_here_ &= ~(std::uint64_t{1} << pop().at->number());
}

void due_shards::push(const source& s) noexcept
{
  heap_[size_++] = s;
  if (size_ > 1) std::push_heap(heap_.data(), heap_.data() + size_, comes_later);
}

due_shards::source& due_shards::pop() noexcept
{
  if (size_ > 1) std::pop_heap(heap_.data(), heap_.data() + size_, comes_later);
  return heap_[--size_];
}

}  // namespace asio_wheel::detail
