// L3 timers: a drop-in for asio::steady_timer whose waits are on the wheel.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/timer_state.hpp>
#include <asio_wheel/detail/timers/timer_object.hpp>

#include <concepts>
#include <utility>

namespace asio_wheel {

/// A waitable timer with every member of `asio::basic_waitable_timer<std::chrono::steady_clock>`,
/// except deprecated members. Its waits are on the timing wheel of its executor's context.
///
/// What differs: the wheel sets the resolution; a wait can be cancelled until its handler begins,
/// even if it has expired; and the timer may outlive its context. The context destroys the handlers
/// uncalled.
///
/// Thread safety: distinct and shared objects are safe, except for construction, assignment and
/// destruction.
template <class Executor = asio::any_io_executor>
class basic_wheel_timer
  : public detail::timer_object<detail::clock_type, asio::wait_traits<detail::clock_type>,
                                detail::timer_state, Executor> {
  using base = detail::timer_object<detail::clock_type, asio::wait_traits<detail::clock_type>,
                                    detail::timer_state, Executor>;

public:
  /// The timer type for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = basic_wheel_timer<OtherExecutor>;  ///< a timer of `OtherExecutor`
  };

  using base::base;

  /// Takes over the other timer's expiry and its pending waits. The other timer stays on its wheel
  /// and executor, as a timer that has expired.
  basic_wheel_timer(basic_wheel_timer&& other) = default;

  /// Cancels what is pending here, then takes over.
  basic_wheel_timer& operator=(basic_wheel_timer&& other) = default;

  /// Takes over from a timer of another executor. Converts the executor.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_wheel_timer(basic_wheel_timer<OtherExecutor>&& other) : base(std::move(other))
  {}

  /// Takes over from a timer of another executor. Converts the executor.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_wheel_timer& operator=(basic_wheel_timer<OtherExecutor>&& other)
  {
    return *this = basic_wheel_timer(std::move(other));
  }

  /// Cancels what is pending.
  ~basic_wheel_timer() = default;
};

/// A timer of any executor.
using wheel_timer = basic_wheel_timer<>;

}  // namespace asio_wheel
