// Stops at the moment between a wait's tick and its completion.
#pragma once

#include <chrono>

#include "support/run.hpp"
#include "support/wheel.hpp"

namespace support {

/// Keeps the thread busy for `length` by the wheel's clock, calling `f` all the time.
template <class Function>
void spin(const asio_wheel::wheel_timer_service& wheel, std::chrono::nanoseconds length, Function f)
{
  const auto end = wheel.now() + length;
  do {
    f();
  } while (wheel.now() < end);
}
inline void spin(const asio_wheel::wheel_timer_service& wheel, std::chrono::nanoseconds length)
{
  spin(wheel, length, [] {});
}

/// Calls `act` while the waits that `start` starts are due but not completed: a whole batch of
/// other waits comes due before them. They must be due in 1 to 2 ms. Runs the context to its end.
template <class Start, class Act>
void act_while_due(context_with_wheel& c, Start start, Act act)
{
  using namespace std::chrono_literals;
  constexpr std::size_t completed_at_once = 64;
  const auto due = c.wheel.now() + 1ms;
  c.wheel.async_wait(due, [&](boost::system::error_code) { act(); });
  for (std::size_t i = 1; i < completed_at_once; ++i)
    c.wheel.async_wait(due, [](boost::system::error_code) {});
  start();
  spin(c.wheel, 5ms);
  run_to_end(c.context);
}

}  // namespace support
