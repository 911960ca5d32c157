// L3 timers: time that passes when a test says so.
#pragma once

#include <asio_wheel/detail/base/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

#include <cstddef>
#include <functional>

namespace asio_wheel {

/// Stops a wheel's clock while it lives, and moves it by hand.
///
///     virtual_time time{wheel};
///     wheel.async_wait(30s, handler);
///     time.advance(1h);  // calls the handler, and returns at once
///
/// Whatever is on the wheel follows: waits, timers, deadlines of operations, all that repeats.
/// The context's other work goes on in real time.
///
/// When it is destroyed, the clock runs again from the real present, which is mostly before the
/// time that was reached. Waits keep their deadlines, so none is early. A plain wait, a timer's
/// wait or a cancel_after that is due stays due. A watchdog, a heartbeat, a guarded operation or a
/// scheduler's task whose handler has not begun waits for its deadline in real time. The destructor
/// calls no handlers.
///
/// There is one clock for all threads: now(), and starting and cancelling waits, are as thread-safe
/// as ever. Constructing, advancing and destroying are not, and are not allowed in a handler of the
/// context. An io_context must not be run by others meanwhile. What others start while the clock
/// stops or starts again is judged by either time.
class ASIO_WHEEL_EXPORT virtual_time {
public:
  using duration = detail::duration;      ///< of the wheel's clock
  using time_point = detail::time_point;  ///< of the wheel's clock

  /// Stops the clock of a wheel in an io_context, which advance() polls, and restarts if it has
  /// run out of work.
  ///
  /// Exceptions: std::logic_error if another virtual_time has stopped it; std::invalid_argument if
  ///   the wheel's executor is not an io_context's own; std::bad_alloc.
  explicit virtual_time(wheel_timer_service& wheel);

  /// Stops the clock of a wheel in any context.
  ///
  /// @param wheel      whose clock it is.
  /// @param run_ready  called by advance(): returns when all handlers have been called that the
  ///                   context could call without waiting.
  /// Exceptions: std::logic_error if another virtual_time has stopped it; std::bad_alloc.
  virtual_time(wheel_timer_service& wheel, std::function<void()> run_ready);

  virtual_time(const virtual_time&) = delete;
  virtual_time& operator=(const virtual_time&) = delete;

  /// Lets the clock run again.
  ~virtual_time();

  /// What the wheel's now() says.
  [[nodiscard]] time_point now() const noexcept;

  /// Moves the clock to `d` from now and completes what is due by then, in the order of the
  /// deadlines, each with the clock at its tick. What handlers start meanwhile is included.
  ///
  /// @param d  how far; zero or less completes what is due now. The clock never gets to
  ///           time_point::max().
  /// Returns how many waits expired, as wheel_stats counts them.
  /// Exceptions: those of handlers. The clock then stands where the handler saw it, nothing is
  ///   lost, and the next advance() goes on from there.
  std::size_t advance(detail::any_delay d);

  /// Completes what is due now, moves the clock to the next tick at which a wait is due, and
  /// completes what is due then. A watchdog that was touched is due at the time for which it was
  /// filed: then the clock moves, and nothing expires. Returns false, and leaves the clock, if no
  /// wait is pending that has a deadline.
  /// Exceptions: as of advance().
  bool advance_to_next();

  /// Moves the clock to the beginning of the next tick, unless it stands at one, and completes what
  /// is due by then. A delay of whole ticks then ends exactly when it has passed.
  /// Exceptions: as of advance().
  void align();

  /// What advance_until_idle() passed through.
  struct passage {
    std::size_t expired = 0;  ///< waits that did, in all
    duration time{};          ///< how far the clock moved
    bool idle = false;        ///< nothing is left to wait for; otherwise the limit came first

    /// If idle: how many waits are pending that have no deadline, so that time will not end them.
    /// The wheel's pending_by_handler() says which. Operations of simulated streams are among them.
    std::size_t stuck = 0;

    /// If idle: whether the context still has work. An operation or a coroutine waits for something
    /// that time does not bring: what is stuck, or a socket, a channel, a work guard. For contexts
    /// with a function that runs ready handlers, whether something is stuck.
    bool blocked = false;
  };

  /// Jumps from deadline to deadline, as tokio's paused clock does by itself, and completes what is
  /// due at each, until nothing is pending that has a deadline, or until the next one is further
  /// than `limit` from where it began. In the first case the clock stands where the last wait was
  /// due, in the second at the limit.
  ///
  ///     const auto passage = time.advance_until_idle(24h);
  ///     assert(passage.idle && passage.expired == 5);
  ///
  /// The limit is one of time: handlers that take no time, and post each other for ever or wait for
  /// what has passed, keep it, as they would keep run().
  ///
  /// @param limit  the furthest the clock goes; zero or less completes what is due now.
  /// Exceptions: as of advance().
  passage advance_until_idle(detail::any_delay limit);

private:
  [[nodiscard]] time_point end_of(duration d) const noexcept;
  void complete_until(time_point limit);

  detail::intrusive_ptr<detail::wheel_core> core_;
  std::function<void()> run_ready_;
  const asio::io_context* context_ = nullptr;  ///< if that is what is run
};

}  // namespace asio_wheel
