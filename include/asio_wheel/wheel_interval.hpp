// L3 timers: a tick that repeats without drift.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/initiate_wait.hpp>
#include <asio_wheel/detail/timers/interval_state.hpp>
#include <asio_wheel/missed_tick.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// Ticks at regular times, as `tokio::time::Interval` does.
///
/// The ticks are due at `first + k * period`, and never drift. async_tick() waits for the next tick
/// that nobody took. If that tick is already due, it completes at once, as if posted: a consumer
/// who fell behind gets one tick per call, with other work of the context in between. `missed_tick`
/// says which ticks follow.
///
/// Thread safety: distinct and shared objects are safe, except for construction, assignment and
/// destruction. A moved-from object may only be destroyed or assigned to. An interval may outlive
/// its context, but must not start anything then.
template <class Executor = asio::any_io_executor>
class basic_wheel_interval {
public:
  using executor_type = Executor;         ///< the default executor of handlers
  using clock_type = detail::clock_type;  ///< the clock of its times
  using duration = detail::duration;      ///< of the clock
  using time_point = detail::time_point;  ///< of the clock

  /// The interval type for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = basic_wheel_interval<OtherExecutor>;  ///< an interval of `OtherExecutor`
  };

  /// An interval whose first tick is due now, the second one period later.
  ///
  /// @param place   a wheel, or an executor or context whose wheel to use (see use_wheel).
  /// @param period  from tick to tick; more than zero. Each tick is completed at the wheel's next
  ///                tick, and the rounding does not add up.
  /// @param missed  what happens to ticks that are taken too late.
  /// Exceptions: std::invalid_argument, naming the period and its range; std::bad_alloc; what
  ///   use_wheel() throws.
  basic_wheel_interval(wheel_place<Executor> place, detail::any_delay period,
                       missed_tick missed = missed_tick::burst)
    : basic_wheel_interval(place, place.wheel.now(), period, missed)
  {}

  /// An interval whose first tick is due at `first`. All else as above.
  basic_wheel_interval(wheel_place<Executor> place, detail::any_deadline first,
                       detail::any_delay period, missed_tick missed = missed_tick::burst)
    : state_(make_state(detail::core_of(place.wheel), first, period, missed)),
      executor_(place.executor, state_->context_executor())
  {}

  /// Takes over the ticks and the pending operations.
  basic_wheel_interval(basic_wheel_interval&&) = default;

  /// Takes over from an interval of another executor. Converts the executor. For
  /// `use_awaitable.as_default_on(interval)`.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_wheel_interval(basic_wheel_interval<OtherExecutor>&& other)
    : executor_(other.get_executor(), other.state_->context_executor())
  {
    state_.reset(other.state_.release());
  }

  /// Cancels what is pending here, then takes over.
  basic_wheel_interval& operator=(basic_wheel_interval&&) = default;

  /// Cancels what is pending.
  ~basic_wheel_interval() = default;

  /// The default executor of handlers.
  [[nodiscard]] executor_type get_executor() const noexcept
  {
    return executor_.get(state_->context_executor());
  }

  /// From tick to tick.
  [[nodiscard]] duration period() const noexcept { return state_->period(); }

  /// Cancels every async_tick whose handler has not begun: they complete with operation_aborted. No
  /// tick is lost or moved: a later async_tick waits for the next tick as before.
  void cancel() noexcept { state_->cancel(); }

  /// Restarts the rhythm: the next tick is due one period from now. Each pending async_tick waits
  /// for that tick, even if its own tick was due.
  void reset() noexcept { state_->reset(); }

  /// Waits for the next tick and takes it.
  ///
  /// Several may be pending. They all complete with one tick, or each with its own if several ticks
  /// are due.
  ///
  /// @param token  completion signature `void(error_code, time_point)`, with the time when the tick
  ///               was due, however late it is; the executor's default token, or asio::deferred.
  /// Errors: success, never before the tick is due; operation_aborted if cancelled by cancel(), the
  ///   interval's destruction, wheel.cancel_all() or the associated slot, and no tick is taken
  ///   then; wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or get_executor().
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc; nothing is started then.
  template <asio::completion_token_for<void(error_code, time_point)> Token =
              detail::default_token_for<executor_type>>
  auto async_tick(Token&& token = detail::default_token_for<executor_type>())
  {
    return asio::async_initiate<Token, void(error_code, time_point)>(
      initiate_tick{state_.get(), executor_}, token);
  }

private:
  template <class>
  friend class basic_wheel_interval;

  /// The initiation of async_tick(). It may outlive the interval.
  struct initiate_tick {
    using executor_type = Executor;

    [[nodiscard]] executor_type get_executor() const noexcept
    {
      return executor.get(state->context_executor());
    }

    template <class Handler>
    void operator()(Handler&& h) const
    {
      using wait =
        detail::initiate_wait<detail::tick_wait_op, detail::interval_state, executor_type>;
      using handler = detail::tick_handler<std::decay_t<Handler>>;
      wait{state.get(), &executor}(handler{std::forward<Handler>(h), state});
    }

    detail::intrusive_ptr<detail::interval_state> state;
    detail::timer_executor<executor_type> executor;
  };

  /// Counts its owner.
  [[nodiscard]] static detail::interval_state* make_state(detail::wheel_core& c, time_point first,
                                                          duration period, missed_tick missed)
  {
    using state = detail::interval_state;
    return detail::intrusive_ptr<state>(new state(c, first, period, missed)).release();
  }

  struct close {
    void operator()(detail::interval_state* s) const noexcept
    {
      s->close();
      intrusive_ptr_release(s);
    }
  };

  std::unique_ptr<detail::interval_state, close> state_;
  detail::timer_executor<executor_type> executor_;
};

/// An interval of any executor.
using wheel_interval = basic_wheel_interval<>;

}  // namespace asio_wheel
