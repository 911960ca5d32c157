// L3 roof: what a heartbeat is told, and what it says.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <chrono>
#include <cstddef>

namespace asio_wheel {

/// When a heartbeat is due, and when it is overdue for good.
struct heartbeat_options {
  /// How long the connection may be idle before a ping; more than zero.
  std::chrono::nanoseconds interval = std::chrono::seconds{60};

  /// After how many intervals without anything from the peer it is lost; at least 1, which leaves
  /// it no time to answer a ping.
  std::size_t max_missed = 3;
};

/// What there is to do for a connection.
enum class heartbeat_event {
  send_ping,  ///< the connection was idle for an interval: send something that asks for an answer
  peer_lost,  ///< nothing came from the peer for max_missed intervals
};

}  // namespace asio_wheel
