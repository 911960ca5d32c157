// L2 engine: the service that plugs a timing wheel into an execution context.
#pragma once

#include <asio_wheel/detail/base/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/engine/abi.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>
#include <asio_wheel/pending_handlers.hpp>
#include <asio_wheel/wheel_errc.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel {

class wheel_timer_service;

namespace detail {
/// What timers of a wheel share with it.
[[nodiscard]] wheel_core& core_of(const wheel_timer_service& wheel) noexcept;
}  // namespace detail

/// A timing wheel, hashed and hierarchical (Varghese and Lauck, SOSP 1987), in an execution
/// context.
///
/// One `steady_timer` on a strand drives all the waits of the context, and their handlers are
/// dispatched from functions posted to the context's executor, in batches: there is no thread of
/// its own. (In a context that is neither an io_context nor a thread_pool, Asio waits for its
/// steady_timer in a thread, and where its executor has no memory for a function the wheel asks it
/// again until it has.) Make it with make_wheel() or use_wheel(); it is destroyed with its context.
///
/// Thread safety: every member may be called from any thread at any time. No handler is called
/// from inside any of them.
class ASIO_WHEEL_EXPORT wheel_timer_service : public asio::execution_context::service {
public:
  using executor_type = asio::any_io_executor;  ///< that of handlers without one of their own
  using clock_type = detail::clock_type;        ///< the clock of all deadlines
  using duration = detail::duration;            ///< of the clock
  using time_point = detail::time_point;        ///< of the clock

  /// By which a context knows the service.
  static asio::execution_context::id id;

  /// For `make_service`. Prefer make_wheel(), which fills in the executor: that of the context
  /// itself, and not a strand, or all handlers without an executor of their own would share it.
  /// Throws std::invalid_argument that names the first bad option and its range.
  wheel_timer_service(asio::execution_context& context, const executor_type& ex,
                      const wheel_options& options = {});

  /// For `use_service(io_context&)`: with the default options.
  explicit wheel_timer_service(asio::io_context& context);

  /// For `use_service(execution_context&)`, which finds a wheel that exists. It cannot make one, as
  /// it does not know the context's executor: then it throws std::logic_error. Use use_wheel().
  explicit wheel_timer_service(asio::execution_context& context);

  /// The context calls this.
  ~wheel_timer_service();

  /// Waits for `delay` to pass.
  ///
  /// A delay of zero or less completes at once, as if posted; the max() of any duration never does.
  ///
  /// @param delay  any duration, from the initiation; rounded up to the wheel's next tick. What
  /// does
  ///               not fit in nanoseconds is never; infinity too. Not a number is at once.
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

  /// Waits until `deadline`. One that has passed completes at once, as if posted;
  /// time_point::max() never comes. All else as above.
  template <asio::completion_token_for<void(error_code)> Token = asio::deferred_t>
  auto async_wait(detail::any_deadline deadline, Token&& token = {})
  {
    return asio::async_initiate<Token, void(error_code)>(initiate(), token, deadline);
  }

  /// The time by which deadlines are judged: no wait succeeds before its deadline by this. On a
  /// wheel with a coarse clock it is as coarse, and ahead of steady_clock by up to its grain.
  [[nodiscard]] time_point now() const noexcept;

  /// The executor of handlers that have none of their own.
  [[nodiscard]] executor_type get_executor() const noexcept;

  /// As given, with slots and shards filled in and rounded.
  [[nodiscard]] const wheel_options& options() const noexcept;

  /// Waits whose handlers have not begun, other than those that were cancelled: all that
  /// cancel_all() would cancel. Takes every shard's lock.
  [[nodiscard]] std::size_t pending() const noexcept;

  /// What is pending, by the type of the handler. It answers who leaks timers.
  ///
  /// While nothing starts, ends or moves, every wait is counted once. A wait that does so during
  /// the call may be missed or counted twice. It does not find waits on their way through their
  /// handlers' own executors, for example in a busy strand, nor operations that a guard has found
  /// due but not told yet. pending() counts these.
  ///
  /// All coroutines that await on one kind of executor are of one type: see doc/observing.md. The
  /// operations that a watchdog, a heartbeat or a timed_stream guards share a wait,
  /// which goes by the handler of the first; while none runs, it is a detail::operation_guard.
  ///
  /// Takes each shard's lock many times, for some microseconds each; one call at a time, others
  /// wait for it. Costs no memory and no instruction before it is called.
  /// Exceptions: std::bad_alloc.
  [[nodiscard]] pending_handlers pending_by_handler() const;

  /// When the next wait expires: the tick of the earliest deadline; in the past if it is due
  /// already. Nothing if no wait is pending that will ever expire.
  ///
  /// A watchdog that was touched counts with the time at which the wheel looks at it next, which
  /// may be before its deadline. Waits on their way through their handlers' own executors do not
  /// count. Locks as pending_by_handler() does.
  [[nodiscard]] std::optional<time_point> next_expiry() const;

  /// Says how busy the program is: 0 at ease, 1 at its limit. The timeouts of watchdogs with an
  /// idle_window depend on it, also of those already pending. After a rise the context looks
  /// through these watchdogs, a few thousand at a time, and again when the next of them come near:
  /// some ten nanoseconds for each. Without such watchdogs this is a store. Envoy scales its
  /// timeouts likewise.
  ///
  /// @param p  from 0 to 1, 0 until it is set.
  /// Exceptions: std::invalid_argument, naming the value and its range.
  void set_pressure(double p);

  /// What was set last.
  [[nodiscard]] double pressure() const noexcept;

  /// Cancels all pending waits: they complete with operation_aborted. Returns how many. A wait that
  /// another thread starts during the call may or may not be among them.
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
