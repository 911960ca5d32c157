// L3 timers: a drop-in for asio::steady_timer whose waits are on the wheel.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/engine/initiate_wait.hpp>
#include <asio_wheel/detail/engine/timer_state.hpp>
#include <asio_wheel/wheel_place.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// What wheel_timer and the timers of drop_in.hpp have in common: a `State`, a timer_state or a
/// clock_state, on an executor.
template <class Clock, class WaitTraits, class State, class Executor>
class timer_object {
public:
  using executor_type = Executor;                 ///< the default executor of handlers
  using clock_type = Clock;                       ///< the clock of its times
  using duration = typename Clock::duration;      ///< of the clock
  using time_point = typename Clock::time_point;  ///< of the clock
  using traits_type = WaitTraits;                 ///< for code that asks a timer for them

  /// A timer that has expired.
  ///
  /// @param place  an executor, a context or a wheel; use_wheel() finds or makes the wheel of the
  ///               first two. Handlers without an executor of their own run through its executor.
  ///               Where `Executor` cannot be made of an any_io_executor, name both:
  ///               `{wheel, executor}`.
  /// Exceptions: std::bad_alloc; what use_wheel() throws.
  explicit timer_object(const wheel_place<Executor>& place)
    : state_(core_of(place.wheel)),
      executor_(place.executor, state_.context_executor())
  {}

  /// A timer on a given wheel that calls handlers through `ex`.
  timer_object(wheel_timer_service& wheel, const executor_type& ex)
    : timer_object(wheel_place<Executor>(wheel, ex))
  {}

  /// A timer that expires at `deadline`.
  timer_object(const wheel_place<Executor>& place, const any_time_point<time_point>& deadline)
    : timer_object(place)
  {
    expires_at(deadline);
  }

  /// A timer that expires after `delay`.
  timer_object(const wheel_place<Executor>& place, const any_duration<duration>& delay)
    : timer_object(place)
  {
    expires_after(delay);
  }

  /// The default executor of handlers.
  [[nodiscard]] const executor_type& get_executor() const noexcept
  {
    return executor_.get(state_.context_executor());
  }

  /// Cancels all pending waits: they complete with operation_aborted. Returns how many. A wait is
  /// pending until its handler begins, even if the expiry has passed.
  std::size_t cancel() noexcept { return state_.cancel(); }

  /// Cancels the oldest pending wait. Returns 1, or 0 if no wait is pending.
  std::size_t cancel_one() noexcept { return state_.cancel_one(); }

  /// When the timer expires, or expired.
  [[nodiscard]] time_point expiry() const noexcept { return state_.expiry(); }

  /// Sets the expiry and cancels all pending waits. Returns how many.
  std::size_t expires_at(const any_time_point<time_point>& deadline) noexcept
  {
    return state_.expires_at(deadline);
  }

  /// Sets the expiry to `delay` from now and cancels all pending waits. Returns how many.
  std::size_t expires_after(const any_duration<duration>& delay) noexcept
  {
    return state_.expires_after(delay);
  }

  /// Blocks the calling thread until the expiry by its clock. The context need not run. Under a
  /// virtual_time another thread must move the clock. If another thread sets the expiry meanwhile,
  /// this waits for a later expiry, but may notice an earlier expiry only when the first has
  /// passed.
  void wait() { state_.block(); }

  /// As wait(); clears `ec`.
  void wait(error_code& ec)
  {
    wait();
    ec.clear();
  }

  /// Waits for the expiry.
  ///
  /// Completes at once, as if posted, if the expiry has passed; never if the expiry is
  /// time_point::max(). Any number of waits may be pending; they complete in order.
  ///
  /// @param token  completion signature `void(error_code)`; the executor's default token, if this
  ///               Asio defines it. Boost 1.81 to 1.85 do not, for plain executors.
  /// Errors: success when the expiry has come, never before; operation_aborted if cancelled by
  ///   cancel(), a new expiry, the timer's destruction, wheel.cancel_all() or the associated slot;
  ///   wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or get_executor().
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc; nothing is started then.
  template <asio::completion_token_for<void(error_code)> Token =
              typename asio::default_completion_token<executor_type>::type>
  auto async_wait(Token&& token = typename asio::default_completion_token<executor_type>::type())
  {
    return asio::async_initiate<Token, void(error_code)>(initiate(), token);
  }

  /// @cond
protected:
  timer_object(timer_object&& other) : state_(std::move(other.state_)), executor_(other.executor_)
  {}
  timer_object& operator=(timer_object&& other)
  {
    state_ = std::move(other.state_);
    executor_ = other.executor_;
    return *this;
  }
  /// From a timer of another executor. Converts the executor.
  template <class Other>
  explicit timer_object(timer_object<Clock, WaitTraits, State, Other>&& other)
    : timer_object(std::move(other.state_), {other.get_executor(), other.state_.context_executor()})
  {}
  ~timer_object() = default;
  /// @endcond

private:
  template <class, class, class, class>
  friend class timer_object;
  friend wheel_core& core_of(const timer_object& timer) noexcept { return timer.state_.core(); }

  /// Takes a finished executor, since making one may throw, and then takes over the waits.
  timer_object(State&& state, const timer_executor<executor_type>& ex)
    : state_(std::move(state)),
      executor_(ex)
  {}

  using initiation = initiate_wait<typename State::wait_type, State, executor_type>;
  [[nodiscard]] initiation initiate() noexcept { return {&state_, &executor_}; }

  State state_;
  timer_executor<executor_type> executor_;
};

}  // namespace asio_wheel::detail

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
