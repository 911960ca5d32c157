// L2 engine: moves lazy waits together with the parts of their deadline.
#pragma once

#include <asio_wheel/detail/engine/lazy_state.hpp>

#include "timer_state.hpp"

namespace asio_wheel::detail {

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
