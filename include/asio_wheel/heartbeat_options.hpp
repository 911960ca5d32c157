// L3 timers: the options and the events of a heartbeat.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/base/any_delay.hpp>

#include <chrono>
#include <cstddef>

namespace asio_wheel {

/// When to ping, and when the peer is lost.
struct heartbeat_options {
  /// How long the connection may be idle before a ping; more than zero. The max() of any
  /// duration is never.
  detail::any_delay interval = std::chrono::seconds{60};

  /// How many pings may go unanswered; at least 1. The peer is lost when the interval after the
  /// last of them has passed in silence.
  std::size_t max_missed = 3;
};

/// What to do for a connection.
enum class heartbeat_event {
  send_ping,  ///< the connection was idle for an interval: send something that asks for an answer
  peer_lost,  ///< max_missed pings went unanswered, for an interval each
};

}  // namespace asio_wheel
