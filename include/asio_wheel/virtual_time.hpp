// L3 timers: time that a test moves by hand.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
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
/// When it is destroyed, the clock runs again from the real present, mostly before the time that it
/// had reached. Waits keep their deadlines, so none is early. A plain wait, a timer's wait or a
/// cancel_after stays due if it is due. A watchdog, a heartbeat, an interval, a guarded
/// operation or a scheduler's task waits for its deadline in real time, if its handler has not
/// begun; a touch from then on does not bring this deadline forward, as it moves deadlines to later
/// only, but set_timeout() does. The destructor calls no handlers.
///
/// All threads share the clock: now(), and starting and cancelling waits, stay thread-safe.
/// Constructing, advancing and destroying are not thread-safe, and are not allowed in a handler of
/// the context. Nobody else may run an io_context meanwhile. Waits that other threads start while
/// the clock stops or starts again may go by either time.
class ASIO_WHEEL_EXPORT virtual_time {
public:
  using duration = detail::duration;      ///< of the wheel's clock
  using time_point = detail::time_point;  ///< of the wheel's clock

  /// Stops the clock of a wheel in an io_context. advance() polls the context, and restarts it if
  /// it has run out of work.
  ///
  /// Exceptions: std::logic_error if another virtual_time has stopped it; std::invalid_argument if
  ///   the wheel's executor is not an io_context's own; std::bad_alloc.
  explicit virtual_time(wheel_timer_service& wheel);

  /// Stops the clock of a wheel in any context.
  ///
  /// @param wheel      the wheel whose clock stops.
  /// @param run_ready  called by advance(): calls all handlers that the context can call without
  ///                   waiting, then returns.
  /// Exceptions: std::logic_error if another virtual_time has stopped it; std::bad_alloc.
  virtual_time(wheel_timer_service& wheel, std::function<void()> run_ready);

  virtual_time(const virtual_time&) = delete;
  virtual_time& operator=(const virtual_time&) = delete;

  /// Lets the clock run again.
  ~virtual_time();

  /// The wheel's now().
  [[nodiscard]] time_point now() const noexcept;

  /// Moves the clock to `d` from now and completes what is due by then, in the order of the
  /// deadlines, each with the clock at its tick. What handlers start meanwhile is included.
  ///
  /// @param d  how far; zero or less completes what is due now. The clock never gets to
  ///           time_point::max().
  /// Returns how many waits expired, as wheel_stats counts them.
  /// Exceptions: whatever handlers throw. The clock then stands where the handler saw it, nothing
  ///   is lost, and the next advance() goes on from there.
  std::size_t advance(detail::any_delay d);

  /// Completes what is due now, moves the clock to the next tick at which a wait is due, and
  /// completes what is due then. A touched watchdog is due at the time for which it was filed: the
  /// clock moves there, and nothing expires. Returns false, and leaves the clock, if no wait with a
  /// deadline is pending. If set_pressure() was called and a watchdog has an idle_window, the clock
  /// also stops, or is left, where the wheel checks such watchdogs.
  /// Exceptions: as of advance().
  bool advance_to_next();

  /// Moves the clock to the beginning of the next tick, unless it stands at the beginning of a
  /// tick, and completes what is due by then. After that, a delay of whole ticks ends exactly when
  /// it has passed.
  /// Exceptions: as of advance().
  void align();

  /// What advance_until_idle() passed through.
  struct passage {
    std::size_t expired = 0;  ///< waits that expired, in all
    duration time{};          ///< how far the clock moved
    bool idle = false;        ///< nothing is left to wait for; otherwise the limit came first

    /// If idle: how many pending waits have no deadline, so that time will not end them. Includes
    /// operations of simulated streams. The wheel's pending_by_handler() says which.
    std::size_t stuck = 0;

    /// If idle: true if the context still has work. Then an operation or a coroutine waits for
    /// something that time does not bring: what is stuck, or a socket, a channel, a work guard.
    /// With a `run_ready` function: true if something is stuck.
    bool blocked = false;
  };

  /// Jumps from deadline to deadline, as tokio's paused clock does by itself, and completes what is
  /// due at each. Stops when no wait with a deadline is pending: the clock then stands where the
  /// last wait was due. Stops at `limit` from where it began if the next deadline is further: the
  /// clock then stands at the limit.
  ///
  ///     const auto passage = time.advance_until_idle(24h);
  ///     assert(passage.idle && passage.expired == 5);
  ///
  /// The limit is in time. Handlers that post each other for ever, or wait again and again for a
  /// past time, keep this function from returning, as they would keep run().
  ///
  /// @param limit  the furthest the clock goes; zero or less completes what is due now.
  /// Exceptions: as of advance().
  passage advance_until_idle(detail::any_delay limit);

private:
  [[nodiscard]] time_point end_of(duration d) const noexcept;
  void complete_until(time_point limit);

  detail::intrusive_ptr<detail::wheel_core> core_;
  std::function<void()> run_ready_;
  const asio::io_context* context_ = nullptr;  ///< the io_context to run; null with a `run_ready`
};

}  // namespace asio_wheel
