// L2 engine: the lock's side of a timer of any clock.
#include <asio_wheel/detail/engine/clock_state.hpp>

#include "lazy_state.hpp"

namespace asio_wheel::detail {

void waits_of_clock::lock_for(step s) const noexcept
{
  const shard_lock lock = enter();
  s();
}

std::size_t waits_of_clock::cancel_for(step s) noexcept
{
  return cancel(here(), [s](shard_lock&) { s(); });
}

void waits_of_clock::assign(waits_of_clock& other, step s) noexcept
{
  lazy_state::assign(other, s);
}

void waits_of_clock::sleep_towards(time_point t) const
{
  core().clock.sleep_towards(t);
}

}  // namespace asio_wheel::detail
