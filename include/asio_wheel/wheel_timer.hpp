// L3 roof: a drop-in for asio::steady_timer whose waits are on the wheel.
#pragma once

#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/timer_executor.hpp>
#include <asio_wheel/service/wait_handler.hpp>
#include <asio_wheel/service/waits_of_timer.hpp>
#include <asio_wheel/service/wheel_timer_service.hpp>
#include <asio_wheel/use_wheel.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/wait_traits.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// The completion token that `Executor` asks for, or asio::deferred if it has no opinion.
template <class Executor>
using default_token_for =
  std::conditional_t<std::is_void_v<typename asio::default_completion_token<Executor>::type>,
                     asio::deferred_t, typename asio::default_completion_token<Executor>::type>;

/// What a timer can be made on: an executor, a context or a wheel.
template <class Place, class Timer>
concept place_for = std::constructible_from<Timer, Place&>;

/// A waitable timer: `asio::basic_waitable_timer<std::chrono::steady_clock>`, member for member,
/// with its waits on the timing wheel of its executor's context.
///
/// What differs: it has the wheel's resolution; a wait that has expired can be cancelled no more
/// as soon as the wheel has found it due; and it may outlive its context, where its waits end
/// without their handlers being called.
///
/// Thread safety: a distinct object is safe, and so is a shared one, other than for construction,
/// assignment and destruction.
template <class Executor = asio::any_io_executor>
class basic_wheel_timer {
public:
  using executor_type = Executor;                     ///< that of handlers without one of their own
  using clock_type = asio_wheel::clock_type;          ///< the clock of its times
  using duration = asio_wheel::duration;              ///< of the clock
  using time_point = asio_wheel::time_point;          ///< of the clock
  using traits_type = asio::wait_traits<clock_type>;  ///< for code that asks a timer for them

  /// The same for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = basic_wheel_timer<OtherExecutor>;  ///< a timer of `OtherExecutor`
  };

  /// A timer on the wheel of the executor's context (see use_wheel), which has expired.
  /// Handlers without an executor of their own are called through `ex`.
  /// Exceptions: what use_wheel() throws.
  explicit basic_wheel_timer(const executor_type& ex) : basic_wheel_timer(use_wheel(ex), ex) {}

  /// The same with the executor of `context`.
  template <execution_context_type Context>
  explicit basic_wheel_timer(Context& context)
    : basic_wheel_timer(use_wheel(context), executor_type(context.get_executor()))
  {}

  /// A timer on a given wheel, with its executor, which has expired.
  explicit basic_wheel_timer(wheel_timer_service& wheel)
    : basic_wheel_timer(wheel, executor_type(wheel.get_executor()))
  {}

  /// A timer on a given wheel that calls handlers through `ex`.
  basic_wheel_timer(wheel_timer_service& wheel, const executor_type& ex)
    : waits_(wheel.shards()),
      executor_(ex, wheel.shards().executor())
  {}

  /// A timer on any of these, expiring at `deadline`.
  template <place_for<basic_wheel_timer> Place>
  basic_wheel_timer(Place&& place, const time_point& deadline) : basic_wheel_timer(place)
  {
    expires_at(deadline);
  }

  /// A timer on any of these, expiring after `delay`.
  template <place_for<basic_wheel_timer> Place>
  basic_wheel_timer(Place&& place, const duration& delay) : basic_wheel_timer(place)
  {
    expires_after(delay);
  }

  /// Takes over the other timer's expiry and its pending waits.
  basic_wheel_timer(basic_wheel_timer&& other)
    : waits_(std::move(other.waits_)),
      executor_(other.executor_)
  {}

  /// Cancels what is pending here, then takes over.
  basic_wheel_timer& operator=(basic_wheel_timer&& other)
  {
    waits_ = std::move(other.waits_);
    executor_ = other.executor_;
    return *this;
  }

  /// The same from a timer of another executor, which is converted.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_wheel_timer(basic_wheel_timer<OtherExecutor>&& other)
    : basic_wheel_timer(std::move(other.waits_), {other.get_executor(), other.native()})
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

  /// Cancels all pending waits: they complete with operation_aborted. Returns how many. Waits
  /// that have expired complete with success, even if their handlers are yet to be called.
  std::size_t cancel() noexcept { return waits_.cancel(); }

  /// Cancels the oldest pending wait. Returns how many that were, 0 or 1.
  std::size_t cancel_one() noexcept { return waits_.cancel_one(); }

  /// When the timer expires, or expired.
  [[nodiscard]] time_point expiry() const noexcept { return waits_.expiry(); }

  /// Sets the expiry and cancels all pending waits. Returns how many.
  std::size_t expires_at(const time_point& deadline) noexcept
  {
    return waits_.expires_at(deadline);
  }

  /// Sets the expiry to `delay` from now and cancels all pending waits. Returns how many.
  std::size_t expires_after(const duration& delay) noexcept { return waits_.expires_after(delay); }

  /// Blocks the calling thread until the expiry by the wheel's clock. Does not need the context
  /// to run; under a virtual_time it takes another thread to move the clock.
  void wait()
  {
    const wheel_clock& clock = waits_.shards().clock();
    while (clock.now() < expiry()) clock.sleep_towards(expiry());
  }

  /// The same; `ec` is cleared.
  void wait(error_code& ec)
  {
    wait();
    ec.clear();
  }

  /// Waits for the expiry.
  ///
  /// Completes at once, as if posted, if it has passed when it is set; never at
  /// time_point::max(). Any number of waits may be pending; they complete in order.
  ///
  /// @param token  completion signature `void(error_code)`; the executor's default token, or
  ///               asio::deferred.
  /// Errors: success when the expiry has come, never before; operation_aborted if cancelled, by
  ///   cancel(), by a new expiry, by the timer's destruction or by the associated slot;
  ///   wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or get_executor().
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc, and what posting to the context throws; nothing is started then.
  template <class Token = default_token_for<executor_type>>
  auto async_wait(Token&& token = default_token_for<executor_type>())
  {
    return asio::async_initiate<Token, void(error_code)>(initiate_wait(*this), token);
  }

private:
  template <class>
  friend class basic_wheel_timer;

  /// The executor is there before the waits are taken over: making one may throw.
  basic_wheel_timer(waits_of_timer&& waits, const timer_executor<executor_type>& ex)
    : waits_(std::move(waits)),
      executor_(ex)
  {}

  class initiate_wait {
  public:
    using executor_type = Executor;

    explicit initiate_wait(basic_wheel_timer& timer) noexcept : timer_(&timer) {}
    [[nodiscard]] executor_type get_executor() const noexcept { return timer_->get_executor(); }

    template <class Handler>
    void operator()(Handler&& handler) const
    {
      basic_wheel_timer& timer = *timer_;
      std::decay_t<Handler> h(std::forward<Handler>(handler));
      launch_wait<timer_wait_op>(h, timer.native(), timer.get_executor(),
                                 timer.executor_.is_native_to_wheel(),
                                 [&](timer_wait_op& op) { timer.waits_.start(op); });
    }

  private:
    basic_wheel_timer* timer_;
  };

  [[nodiscard]] const asio::any_io_executor& native() const noexcept
  {
    return waits_.shards().executor();
  }

  waits_of_timer waits_;
  timer_executor<executor_type> executor_;
};

/// A timer of any executor.
using wheel_timer = basic_wheel_timer<>;

}  // namespace asio_wheel
