// L2 engine: moves lazy waits together with the parts of their deadline.
#pragma once

#include <asio_wheel/detail/engine/lazy_state.hpp>

#include "timer_state.hpp"

#include <atomic>

namespace asio_wheel::detail {

/// Takes over a sign of life that has come to `from` while it was moved: after its time was copied
/// to `to`, and before its guard had moved.
inline void keep_later(std::atomic<time_point>& to, const std::atomic<time_point>& from) noexcept
{
  const time_point late = from.load(std::memory_order_relaxed);
  time_point t = to.load(std::memory_order_relaxed);
  while (t < late && !to.compare_exchange_weak(t, late, std::memory_order_relaxed)) continue;
}

template <class Take>
void lazy_state::assign(lazy_state& other, Take take) noexcept
{
  timer_waits::assign(other, [&] {
    take();
    adopt_waits();
  });
}

template <class Take>
void guarding_state::assign(guarding_state& other, Take take) noexcept
{
  if (this == &other) return;
  retire();
  lazy_state::assign(other, take);
  take_guard(other);
}

}  // namespace asio_wheel::detail
