// What the command line sets, and what all sessions count.
#pragma once

#include <asio_wheel.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

namespace lines {

using std::chrono::milliseconds;

struct settings {
  std::string address = "127.0.0.1";
  int port = 4040;
  int threads = 2;
  int idle_ms = 60'000;
  int heartbeat_ms = 10'000;
  int stall_ms = 5'000;
  int request_ms = 1'000;
  int grace_ms = 5'000;
};

/// By any thread.
struct counters {
  std::atomic<std::size_t> sessions = 0;
  std::atomic<std::size_t> answered = 0;
  std::atomic<std::size_t> idle = 0;     ///< sessions whose client wanted nothing for too long
  std::atomic<std::size_t> lost = 0;     ///< sessions whose client was silent, pings included
  std::atomic<std::size_t> stalled = 0;  ///< sessions whose client took no answers
  std::atomic<std::size_t> cut = 0;      ///< sessions that were still there after the grace
};

}  // namespace lines
