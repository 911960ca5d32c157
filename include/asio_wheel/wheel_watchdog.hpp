// L3 timers: tells when something has not been touched for a while.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/timers/keep_alive_base.hpp>
#include <asio_wheel/detail/timers/watchdog_state.hpp>
#include <asio_wheel/idle_window.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <concepts>
#include <utility>

namespace asio_wheel {

/// Expires when nothing has touched it for `timeout`: the deadline of a connection, a session or
/// a lease that lives for as long as it is used (Netty's IdleStateHandler, Redisson's lock
/// watchdog).
///
/// A touch is a reading of the wheel's clock and a relaxed store, with no lock, no list and no
/// allocation, so that every message may touch. When the deadline that the wheel knows has come,
/// the wheel reads the time of the last touch, and files the wait again for what is left. Counting
/// begins with the construction.
///
/// Beside the members below, a watchdog has
/// - `guard()`, `guard(token)`, `guard(type)` and `guard(type, token)`: tie an operation to the
///   watchdog. If the watchdog expires while the operation runs, the operation is cancelled and
///   completes with timed_out. That needs no async_expired(). The token may have a deadline or a
///   guard itself: whichever comes first ends the operation.
/// - `cancel()`: ends each async_expired() with operation_aborted and returns how many. It leaves
///   guarded operations alone.
/// - `set_error(ec)`: what guarded operations report instead of timed_out.
/// - `get_executor()`: the default executor of handlers.
///
/// Its destruction cancels each async_expired(). Guarded operations go on, unguarded from then on.
///
///     wheel_watchdog idle(socket.get_executor(), 30s);
///     for (;;) {
///       co_await socket.async_read_some(buffer, idle.guard());  // timed_out after 30 s of silence
///       idle.touch();
///     }
///
/// Thread safety: distinct and shared objects are safe, except for construction, assignment and
/// destruction.
template <class Executor = asio::any_io_executor>
class basic_wheel_watchdog : public detail::keep_alive_base<detail::watchdog_state, Executor> {
  using base = detail::keep_alive_base<detail::watchdog_state, Executor>;

public:
  using duration = detail::duration;      ///< of the wheel's clock
  using time_point = detail::time_point;  ///< of the wheel's clock

  /// The watchdog type for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = basic_wheel_watchdog<OtherExecutor>;  ///< a watchdog of `OtherExecutor`
  };

  /// A watchdog that has just been touched.
  ///
  /// @param place    an executor, a context or a wheel; use_wheel() finds or makes the wheel of the
  ///                 first two. `{wheel, executor}` names both.
  /// @param timeout  how long after its last touch it expires: more than zero; the max() of any
  ///                 duration is never.
  /// Exceptions: std::invalid_argument, naming the timeout and its range; std::bad_alloc; what
  ///   use_wheel() throws.
  basic_wheel_watchdog(const wheel_place<Executor>& place, detail::any_delay timeout)
    : base(place, duration{timeout})
  {}

  /// A watchdog whose timeout depends on the wheel's pressure (wheel_timer_service::set_pressure):
  /// from `window.max` without pressure to `window.min` under full pressure. Pending waits follow a
  /// change. A wait never expires before the timeout of that moment has passed.
  ///
  ///     wheel_watchdog idle(socket.get_executor(), idle_window{5s, 60s});
  ///     wheel.set_pressure(double(connections) / max_connections);
  ///
  /// Exceptions: std::invalid_argument, naming the value and its range; std::bad_alloc; what
  ///   use_wheel() throws.
  basic_wheel_watchdog(const wheel_place<Executor>& place, const idle_window& window)
    : base(place, window)
  {}

  /// Takes over the other's last touch, timeout and pending operations. The other keeps its touch
  /// and its timeout, or `max` if it had an idle_window.
  basic_wheel_watchdog(basic_wheel_watchdog&& other) = default;

  /// Cancels what is pending here, then takes over.
  basic_wheel_watchdog& operator=(basic_wheel_watchdog&& other) = default;

  /// Takes over from a watchdog of another executor. Converts the executor. For
  /// `use_awaitable.as_default_on(watchdog)`.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_wheel_watchdog(basic_wheel_watchdog<OtherExecutor>&& other) : base(std::move(other))
  {}

  /// Cancels what is pending.
  ~basic_wheel_watchdog() = default;

  /// A sign of life: moves the expiry to `timeout()` from now, or revives an expired watchdog. If
  /// several threads touch at the same time, any of the touches may count.
  void touch() noexcept { this->state_.touch(); }

  /// How long after its last touch it expires; with an idle_window, under the present pressure.
  [[nodiscard]] duration timeout() const noexcept { return this->state_.timeout(); }

  /// Sets the timeout. It counts from the last touch, applies to what is pending, too, and replaces
  /// an idle_window. A shorter timeout takes effect at once, unless a touch comes before the
  /// handler begins. Throws std::invalid_argument unless it is more than zero.
  void set_timeout(detail::any_delay timeout) { this->state_.set_timeout(timeout); }

  /// Waits until nothing has touched the watchdog for `timeout()`.
  ///
  /// Starting a wait is not a touch: it completes at once, as if posted, if the watchdog has
  /// expired. Any number of waits may be pending; all complete when the watchdog expires.
  ///
  /// @param token  completion signature `void(error_code)`; the executor's default token, or
  ///               asio::deferred.
  /// Errors: success when the watchdog has expired, never before; operation_aborted if cancelled
  ///   by cancel(), the watchdog's destruction, wheel.cancel_all() or the associated slot;
  ///   wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or get_executor().
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc; nothing is started then.
  template <
    asio::completion_token_for<void(error_code)> Token = detail::default_token_for<Executor>>
  auto async_expired(Token&& token = detail::default_token_for<Executor>())
  {
    return asio::async_initiate<Token, void(error_code)>(this->initiate(), token);
  }
};

/// A watchdog of any executor.
using wheel_watchdog = basic_wheel_watchdog<>;

}  // namespace asio_wheel
