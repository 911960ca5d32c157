// L3 timers: says when to ping a peer, and when to give it up.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/timers/heartbeat_state.hpp>
#include <asio_wheel/detail/timers/keep_alive_base.hpp>
#include <asio_wheel/heartbeat_options.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel {

/// Keeps a connection alive, by Dubbo's rules.
///
/// **send_ping** comes when the connection was idle in either direction: nothing was sent, or
/// nothing received, for one interval. The ping proves to the peer that this side is alive; the
/// answer proves that the peer is. Two pings are at least one interval apart, whatever the caller
/// does.
///
/// **peer_lost** comes when `max_missed` pings have gone unanswered, for an interval each. With
/// three pings and an interval of one second, a silent peer is lost 4 s after the last received():
/// pings after 1, 2 and 3 s. The peer is lost even if nobody asks for pings in all this time.
/// peer_lost comes again after each further interval, until received() says that the peer is back,
/// for example after a reconnect. Only received() keeps a peer from being lost, and a ping counts
/// as sent even if sent() is not called after it.
///
/// Beside the members below, a heartbeat has
/// - `guard()`, `guard(token)`, `guard(type)` and `guard(type, token)`: tie an operation to the
///   heartbeat. When nothing was received for `max_missed + 1` intervals, the operation is
///   cancelled and completes with timed_out. That needs no async_next(). The token may have a
///   deadline or a guard itself: whichever comes first ends the operation.
/// - `cancel()`: ends each async_next() with operation_aborted and returns how many. It leaves
///   guarded operations alone.
/// - `set_error(ec)`: what guarded operations report instead of timed_out.
/// - `get_executor()`: the default executor of handlers.
///
/// Its destruction cancels each async_next(). Guarded operations go on, unguarded from then on.
///
/// sent() and received() read the wheel's clock and store the time. The wheel checks it once per
/// interval. Counting begins with the construction.
///
///     heartbeat beat(socket.get_executor(), {.interval = 10s, .max_missed = 3});
///     for (;;) {
///       const heartbeat_event event = co_await beat.async_next();
///       if (event == heartbeat_event::peer_lost) break;
///       send("ping");  // into the session's queue: another write may be going on
///     }
///     socket.close();
///     // after each read: beat.received(); after each write: beat.sent();
///     // or once, with a timed_stream: stream.feed(beat);
///
/// Thread safety: distinct and shared objects are safe, except for construction, assignment and
/// destruction.
template <class Executor = asio::any_io_executor>
class basic_heartbeat : public detail::keep_alive_base<detail::heartbeat_state, Executor> {
  using base = detail::keep_alive_base<detail::heartbeat_state, Executor>;

public:
  /// The heartbeat type for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = basic_heartbeat<OtherExecutor>;  ///< a heartbeat of `OtherExecutor`
  };

  /// A heartbeat of a connection that has just sent and received something.
  ///
  /// @param place    an executor, a context or a wheel; use_wheel() finds or makes the wheel of the
  ///                 first two. `{wheel, executor}` names both.
  /// @param options  how often to ping, and how many pings may go unanswered.
  /// Exceptions: std::invalid_argument, naming the bad option and its range; std::bad_alloc; what
  ///   use_wheel() throws.
  basic_heartbeat(const wheel_place<Executor>& place, const heartbeat_options& options)
    : base(place, options)
  {}

  /// Takes over the other's state and pending operations; the other keeps its state.
  basic_heartbeat(basic_heartbeat&& other) = default;

  /// Cancels what is pending here, then takes over.
  basic_heartbeat& operator=(basic_heartbeat&& other) = default;

  /// Takes over from a heartbeat of another executor. Converts the executor. For
  /// `use_awaitable.as_default_on(heartbeat)`.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_heartbeat(basic_heartbeat<OtherExecutor>&& other) : base(std::move(other))
  {}

  /// Cancels what is pending.
  ~basic_heartbeat() = default;

  /// The options of the constructor.
  [[nodiscard]] const heartbeat_options& options() const noexcept { return this->state_.options(); }

  /// Call this when something was sent to the peer. If several threads call it at the same time,
  /// any of the times may count.
  void sent() noexcept { this->state_.sent(); }

  /// Call this when something was received from the peer.
  void received() noexcept { this->state_.received(); }

  /// Waits for the next thing to do.
  ///
  /// Completes at once, as if posted, if an event is overdue. If several waits are pending, each
  /// gets an event of its own, in turn.
  ///
  /// @param token  completion signature `void(error_code, heartbeat_event)`; the executor's default
  ///               token, or asio::deferred. The event means nothing if there is an error.
  /// Errors: operation_aborted if cancelled by cancel(), the heartbeat's destruction,
  ///   wheel.cancel_all() or the associated slot; wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or get_executor().
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc; nothing is started then.
  template <asio::completion_token_for<void(error_code, heartbeat_event)> Token =
              detail::default_token_for<Executor>>
  auto async_next(Token&& token = detail::default_token_for<Executor>())
  {
    return asio::async_initiate<Token, void(error_code, heartbeat_event)>(
      initiate_next{this->initiate()}, token);
  }

private:
  struct initiate_next : base::initiation {
    template <class Handler>
    void operator()(Handler&& handler) const
    {
      base::initiation::operator()(
        detail::heartbeat_handler<std::decay_t<Handler>>{std::forward<Handler>(handler)});
    }
  };
};

/// A heartbeat of any executor.
using heartbeat = basic_heartbeat<>;

}  // namespace asio_wheel
