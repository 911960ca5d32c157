// L3 roof: the options and the events of a heartbeat.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <chrono>
#include <cstddef>

namespace asio_wheel {

/// When to ping, and when the peer is lost.
struct heartbeat_options {
  /// How long the connection may be idle before a ping; more than zero.
  std::chrono::nanoseconds interval = std::chrono::seconds{60};

  /// The peer is lost after this many intervals without anything from it; at least 1. With 1 it has
  /// no time to answer a ping.
  std::size_t max_missed = 3;
};

/// What to do for a connection.
enum class heartbeat_event {
  send_ping,  ///< the connection was idle for an interval: send something that asks for an answer
  peer_lost,  ///< nothing came from the peer for max_missed intervals
};

}  // namespace asio_wheel
