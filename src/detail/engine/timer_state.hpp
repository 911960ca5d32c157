// L2 engine: cancels and moves the waits of an object, with more work in the critical section.
#pragma once

#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/timer_state.hpp>

#include "core.hpp"

namespace asio_wheel::detail {

template <class Then>
std::size_t timer_waits::cancel(const shard& local, Then then) noexcept
{
  std::size_t n = 0;
  {
    shard_lock lock = enter();
    n = lock.cancel(waits_, &lock.at() == &local);
    if (waits_.empty()) [[likely]] {
      then(lock);
      return n;
    }
  }
  return n + cancel_rest(local, then);
}

/// For more waits than one critical section cancels.
template <class Then>
std::size_t timer_waits::cancel_rest(const shard& local, Then then) noexcept
{
  for (std::size_t n = 0;;) {
    shard_lock lock = enter();
    n += lock.cancel(waits_, &lock.at() == &local);
    if (!waits_.empty()) continue;
    then(lock);
    return n;
  }
}

template <class Take>
void timer_waits::assign(timer_waits& other, Take take) noexcept
{
  if (this == &other) return;
  cancel();
  // Counted while other threads may still use it.
  const intrusive_ptr<wheel_core> left(&core(), false);
  intrusive_ptr_add_ref(&other.core());
  const shard_lock lock = other.enter();
  take_over(other, lock);
  take();
}

}  // namespace asio_wheel::detail
