// L2 engine: the service that plugs a timing wheel into an execution context.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/engine/abi.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/initiate_wait.hpp>
#include <asio_wheel/pending_handlers.hpp>
#include <asio_wheel/wheel_errc.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include <cstddef>
#include <optional>

namespace asio_wheel {

class wheel_timer_service;

namespace detail {
/// What timers of a wheel share with it.
[[nodiscard]] wheel_core& core_of(const wheel_timer_service& wheel) noexcept;

/// The context's wheel, if this thread remembered it last and no wheel was destroyed since; nullptr
/// means nothing. Asio's own way locks a mutex and walks along a list: more than all the rest of a
/// deadline.
[[nodiscard]] ASIO_WHEEL_EXPORT wheel_timer_service* recent_wheel(
  const asio::execution_context& context) noexcept;

/// Makes `wheel` the one that this thread used last.
ASIO_WHEEL_EXPORT void remember_wheel(const asio::execution_context& context,
                                      wheel_timer_service& wheel) noexcept;
}  // namespace detail

/// A timing wheel, hashed and hierarchical (Varghese and Lauck, SOSP 1987), in an execution
/// context.
///
/// One `steady_timer` on a strand drives all waits of the context. Functions posted to the
/// context's executor dispatch the handlers in batches: the wheel has no thread. (In a context that
/// is neither an io_context nor a thread_pool, Asio waits for the steady_timer in a thread. If such
/// an executor has no memory for a function, the wheel tries again until it has.) Make a wheel with
/// make_wheel() or use_wheel(); it is destroyed with its context.
///
/// Thread safety: every member may be called from any thread at any time. No member calls a
/// handler.
class ASIO_WHEEL_EXPORT wheel_timer_service : public asio::execution_context::service {
public:
  using executor_type = asio::any_io_executor;  ///< the default executor of handlers
  using clock_type = detail::clock_type;        ///< the clock of all deadlines
  using duration = detail::duration;            ///< of the clock
  using time_point = detail::time_point;        ///< of the clock

  /// A context knows the service by this.
  static asio::execution_context::id id;

  /// For `make_service`. Prefer make_wheel(), which fills in the executor. It should be the
  /// context's own executor: all handlers without an executor would share a strand. Throws
  /// std::invalid_argument, naming the first bad option and its range.
  wheel_timer_service(asio::execution_context& context, const executor_type& ex,
                      const wheel_options& options);

  /// The same with the default options, or what the configuration of the context says: see
  /// use_wheel().
  wheel_timer_service(asio::execution_context& context, const executor_type& ex);

  /// The same for `use_service(io_context&)`.
  explicit wheel_timer_service(asio::io_context& context);

  /// For `use_service(execution_context&)`, which can only find an existing wheel. Throws
  /// std::logic_error, as it does not know the context's executor. Use use_wheel().
  explicit wheel_timer_service(asio::execution_context& context);

  /// The context calls this.
  ~wheel_timer_service();

  /// Waits for `delay` to pass.
  ///
  /// A delay of zero or less completes at once, as if posted; the max() of any duration never does.
  ///
  /// @param delay  any duration, from the initiation; rounded up to the wheel's next tick. Infinity
  ///               and what does not fit in nanoseconds is never. Not a number is at once.
  /// @param token  completion signature `void(error_code)`; `asio::deferred` by default, so
  ///               `co_await wheel.async_wait(5ms)` is complete.
  /// Errors: success when the delay has passed, never before; asio::error::operation_aborted if
  ///   cancelled; wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or the service's.
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc; nothing is started then.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_wait(detail::any_delay delay, Token&& token = {})
  {
    return asio::async_initiate<Token, void(error_code)>(initiate(), token, delay);
  }

  /// Waits until `deadline`. If it has passed, completes at once, as if posted: behind all that
  /// is due already, and ahead of what is still to come, even with an equal deadline. If the kernel
  /// is behind with its own ticks, as on an overloaded virtual machine, a deadline that has just
  /// passed may be taken for ahead: then the wait completes with its tick. time_point::max() never
  /// comes. All else as above.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_wait(detail::any_deadline deadline, Token&& token = {})
  {
    return asio::async_initiate<Token, void(error_code)>(initiate(), token, deadline);
  }

  /// The time of the wheel: no wait succeeds before now() has reached its deadline. With a coarse
  /// clock it is as coarse, and ahead of steady_clock by up to the clock's grain.
  [[nodiscard]] time_point now() const noexcept;

  /// The default executor of handlers.
  [[nodiscard]] executor_type get_executor() const noexcept;

  /// The options as given, with slots and shards filled in and rounded.
  [[nodiscard]] const wheel_options& options() const noexcept;

  /// How many waits cancel_all() would cancel: not cancelled yet, and their handlers have not
  /// begun. Takes every shard's lock.
  [[nodiscard]] std::size_t pending() const noexcept;

  /// What is pending, by the type of the handler. It answers who leaks timers.
  ///
  /// Counts every wait once, as long as nothing starts, ends or moves. A wait that does so during
  /// the call may be missed or counted twice. Misses waits on their way through their handlers' own
  /// executors, for example in a busy strand, and due operations that their guard has not cancelled
  /// yet. pending() counts both.
  ///
  /// All coroutines that await on one kind of executor are of one type: see doc/observing.md. The
  /// operations under one watchdog, heartbeat or timed_stream share a wait. It goes by the handler
  /// of the first; while the last handler runs, it is a detail::operation_guard.
  ///
  /// Takes each shard's lock many times, for some microseconds each. Concurrent calls wait for each
  /// other. Costs no memory and no instruction until it is called.
  /// Exceptions: std::bad_alloc.
  [[nodiscard]] pending_handlers pending_by_handler() const;

  /// When the next wait expires: the tick of the earliest deadline, in the past if it is due
  /// already. Nothing if no pending wait will ever expire.
  ///
  /// A touched watchdog counts with the time of the wheel's next check, which may be before its
  /// deadline; a rise of the pressure counts once the wheel has looked at the watchdog. Waits on
  /// their way through their handlers' own executors do not count. Locks as pending_by_handler()
  /// does.
  [[nodiscard]] std::optional<time_point> next_expiry() const;

  /// Says how busy the program is: 0 at ease, 1 at its limit. The timeouts of watchdogs with an
  /// idle_window depend on it, also while they are pending. After a rise the context checks these
  /// watchdogs, a few thousand at a time, and again when the next deadlines come near: some ten
  /// nanoseconds for each. Without such watchdogs this is a store. Envoy scales its timeouts
  /// likewise.
  ///
  /// @param p  from 0 to 1, 0 until it is set.
  /// Exceptions: std::invalid_argument, naming the value and its range.
  void set_pressure(double p);

  /// The latest pressure.
  [[nodiscard]] double pressure() const noexcept;

  /// Cancels all pending waits: they complete with operation_aborted. Returns how many. May miss a
  /// wait that another thread starts during the call.
  std::size_t cancel_all();

  /// A reading of the counters. Takes every shard's lock.
  [[nodiscard]] wheel_stats stats() const noexcept;

private:
  friend detail::wheel_core& detail::core_of(const wheel_timer_service&) noexcept;

  using initiation = detail::initiate_wait<detail::wait_op, detail::wheel_core, executor_type>;
  [[nodiscard]] initiation initiate() const noexcept { return {core_, nullptr}; }

  void shutdown() override;
  void notify_fork(asio::execution_context::fork_event event) override;

  detail::wheel_core* const core_;  // counted
};

inline detail::wheel_core& detail::core_of(const wheel_timer_service& wheel) noexcept
{
  return *wheel.core_;
}

}  // namespace asio_wheel
