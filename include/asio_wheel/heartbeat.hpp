// L3 roof: says when to ping a peer, and when to give it up.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/roof/alive_object.hpp>
#include <asio_wheel/detail/roof/beating_state.hpp>
#include <asio_wheel/detail/roof/default_token.hpp>
#include <asio_wheel/detail/roof/heartbeat_handler.hpp>
#include <asio_wheel/heartbeat_options.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel {

/// Keeps a connection alive, by the rules that Dubbo has for it.
///
/// **send_ping** comes when the connection was idle in either direction: nothing sent, or nothing
/// received, for one interval. A ping that is sent proves to the peer that this side is alive, and
/// its answer proves the same of the peer. Between two pings there is an interval at least,
/// whatever the caller does.
///
/// **peer_lost** comes when nothing was received for `max_missed` intervals: with three of a second
/// each, 3 s after the last received(). It comes again after each further interval, until a
/// received() says that the peer is back, say after a reconnect.
///
/// Between events nothing happens: sent() and received() read the wheel's clock and store what it
/// says, and the wheel looks at that once per interval. Counting begins with the construction.
///
///     heartbeat beat(socket.get_executor(), {.interval = 10s, .max_missed = 3});
///     while (co_await beat.async_next() == heartbeat_event::send_ping) {
///       co_await async_write(socket, ping);
///       beat.sent();
///     }
///     socket.close();
///     // after each read: beat.received();
///
/// Thread safety: a distinct object is safe, and so is a shared one, other than for construction,
/// assignment and destruction.
template <class Executor = asio::any_io_executor>
class basic_heartbeat : public detail::alive_object<detail::beating_state, Executor> {
  using base = detail::alive_object<detail::beating_state, Executor>;

public:
  /// The same for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = basic_heartbeat<OtherExecutor>;  ///< a heartbeat of `OtherExecutor`
  };

  /// A heartbeat of a connection that has just sent and received something.
  ///
  /// @param place    an executor, a context or a wheel; of the first two, the wheel is found or
  ///                 made by use_wheel(). `{wheel, executor}` names both.
  /// @param options  of the heartbeat: how often, and how many may be missed.
  /// Exceptions: std::invalid_argument, naming the bad option and its range; what use_wheel()
  ///   throws.
  basic_heartbeat(const wheel_place<Executor>& place, const heartbeat_options& options)
    : base(place, options)
  {}

  /// Takes over the other's state and pending operations; the other keeps its state.
  basic_heartbeat(basic_heartbeat&& other) = default;

  /// Cancels what is pending here, then takes over.
  basic_heartbeat& operator=(basic_heartbeat&& other) = default;

  /// Cancels what is pending.
  ~basic_heartbeat() = default;

  /// As given.
  [[nodiscard]] const heartbeat_options& options() const noexcept { return this->state_.options(); }

  /// Something was sent to the peer. Of calls by several threads at the same time, any one may be
  /// the one that counts.
  void sent() noexcept { this->state_.sent(); }

  /// The same for something that was received from it.
  void received() noexcept { this->state_.received(); }

  /// Waits for the next thing to do.
  ///
  /// Completes at once, as if posted, if that is overdue. Of several that are pending, each gets
  /// an event of its own, in turn.
  ///
  /// @param token  completion signature `void(error_code, heartbeat_event)`; the executor's default
  ///               token, or asio::deferred. The event means nothing if there is an error.
  /// Errors: operation_aborted if cancelled, by cancel(), by the heartbeat's destruction or by the
  ///   associated slot; wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or get_executor().
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc, and what posting to the context throws; nothing is started then.
  template <class Token = detail::default_token_for<Executor>>
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
