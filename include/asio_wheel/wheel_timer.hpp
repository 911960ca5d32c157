// L3 roof: a drop-in for asio::steady_timer whose waits are on the wheel.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/any_delay.hpp>
#include <asio_wheel/detail/roof/default_token.hpp>
#include <asio_wheel/detail/service/timer_state.hpp>
#include <asio_wheel/detail/service/wait_handler.hpp>
#include <asio_wheel/wheel_place.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace asio_wheel {

/// A waitable timer with every member of `asio::basic_waitable_timer<std::chrono::steady_clock>`
/// that Asio has not deprecated. Its waits are on the timing wheel of its executor's context.
///
/// What differs: its resolution is the wheel's; a wait can be cancelled until its handler begins,
/// even if it has expired; and the timer may outlive its context, which destroys the handlers
/// uncalled.
///
/// Thread safety: a distinct object is safe, and so is a shared one, other than for construction,
/// assignment and destruction.
template <class Executor = asio::any_io_executor>
class basic_wheel_timer {
public:
  using executor_type = Executor;                     ///< that of handlers without one of their own
  using clock_type = detail::clock_type;              ///< the clock of its times
  using duration = detail::duration;                  ///< of the clock
  using time_point = detail::time_point;              ///< of the clock
  using traits_type = asio::wait_traits<clock_type>;  ///< for code that asks a timer for them

  /// The same for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = basic_wheel_timer<OtherExecutor>;  ///< a timer of `OtherExecutor`
  };

  /// A timer that has expired.
  ///
  /// @param place  an executor, a context or a wheel; use_wheel() finds or makes the wheel of the
  ///               first two. Handlers without an executor of their own run through its executor.
  ///               Where `Executor` cannot be made of an any_io_executor, name both:
  ///               `{wheel, executor}`.
  /// Exceptions: std::bad_alloc; what use_wheel() throws.
  explicit basic_wheel_timer(const wheel_place<Executor>& place)
    : state_(detail::core_of(place.wheel)),
      executor_(place.executor, state_.core().executor)
  {}

  /// A timer on a given wheel that calls handlers through `ex`.
  basic_wheel_timer(wheel_timer_service& wheel, const executor_type& ex)
    : basic_wheel_timer(wheel_place<Executor>(wheel, ex))
  {}

  /// A timer on any of these, expiring at `deadline`.
  basic_wheel_timer(const wheel_place<Executor>& place, const detail::any_deadline& deadline)
    : basic_wheel_timer(place)
  {
    expires_at(deadline);
  }

  /// A timer on any of these, expiring after `delay`.
  basic_wheel_timer(const wheel_place<Executor>& place, const detail::any_delay& delay)
    : basic_wheel_timer(place)
  {
    expires_after(delay);
  }

  /// Takes over the other timer's expiry and its pending waits. The other one stays on its wheel
  /// and executor, as a timer that has expired.
  basic_wheel_timer(basic_wheel_timer&& other)
    : state_(std::move(other.state_)),
      executor_(other.executor_)
  {}

  /// Cancels what is pending here, then takes over.
  basic_wheel_timer& operator=(basic_wheel_timer&& other)
  {
    state_ = std::move(other.state_);
    executor_ = other.executor_;
    return *this;
  }

  /// The same from a timer of another executor, which is converted.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_wheel_timer(basic_wheel_timer<OtherExecutor>&& other)
    : basic_wheel_timer(std::move(other.state_), {other.get_executor(), other.native()})
  {}

  /// The same from a timer of another executor, which is converted.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_wheel_timer& operator=(basic_wheel_timer<OtherExecutor>&& other)
  {
    return *this = basic_wheel_timer(std::move(other));
  }

  /// Cancels what is pending.
  ~basic_wheel_timer() = default;

  /// The executor of handlers that have none of their own.
  [[nodiscard]] const executor_type& get_executor() const noexcept
  {
    return executor_.get(native());
  }

  /// Cancels all pending waits: they complete with operation_aborted. Returns how many. A wait is
  /// pending until its handler begins, even if the expiry has passed.
  std::size_t cancel() noexcept { return state_.cancel(); }

  /// Cancels the oldest pending wait. Returns 1, or 0 if there is none.
  std::size_t cancel_one() noexcept { return state_.cancel_one(); }

  /// When the timer expires, or expired.
  [[nodiscard]] time_point expiry() const noexcept { return state_.expiry(); }

  /// Sets the expiry and cancels all pending waits. Returns how many.
  std::size_t expires_at(const detail::any_deadline& deadline) noexcept
  {
    return state_.expires_at(deadline);
  }

  /// Sets the expiry to `delay` from now and cancels all pending waits. Returns how many.
  std::size_t expires_after(const detail::any_delay& delay) noexcept
  {
    return state_.expires_after(delay);
  }

  /// Blocks the calling thread until the expiry by the wheel's clock. The context need not run.
  /// Under a virtual_time another thread must move the clock. If another thread sets the expiry
  /// meanwhile, this waits for a later one, but may notice an earlier one only when the first has
  /// passed.
  void wait()
  {
    const detail::wheel_clock& clock = state_.core().clock;
    time_point until = expiry();
    for (; clock.now() < until; until = expiry()) clock.sleep_towards(until);
  }

  /// The same; `ec` is cleared.
  void wait(error_code& ec)
  {
    wait();
    ec.clear();
  }

  /// Waits for the expiry.
  ///
  /// Completes at once, as if posted, if the expiry has passed; never if it is time_point::max().
  /// Any number of waits may be pending; they complete in order.
  ///
  /// @param token  completion signature `void(error_code)`; the executor's default token, if
  ///               this Asio has one for it. Boost 1.81 to 1.85 have none for plain executors.
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

private:
  template <class>
  friend class basic_wheel_timer;

  /// Takes a finished executor, since making one may throw, and then takes over the waits.
  basic_wheel_timer(detail::timer_state&& state, const detail::timer_executor<executor_type>& ex)
    : state_(std::move(state)),
      executor_(ex)
  {}

  using initiation =
    detail::initiate_wait<detail::timer_wait_op, detail::timer_state, executor_type>;
  [[nodiscard]] initiation initiate() noexcept { return {&state_, &executor_}; }

  [[nodiscard]] const asio::any_io_executor& native() const noexcept
  {
    return state_.core().executor;
  }

  detail::timer_state state_;
  detail::timer_executor<executor_type> executor_;
};

/// A timer of any executor.
using wheel_timer = basic_wheel_timer<>;

}  // namespace asio_wheel
