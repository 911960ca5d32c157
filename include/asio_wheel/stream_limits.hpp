// L3 timers: what limits a stream's operations beyond their one expiry.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/base/any_delay.hpp>

#include <chrono>
#include <cstdint>

namespace asio_wheel {

/// How long the operations of a timed_stream may take. The max() of any duration is no limit.
struct stream_limits {
  /// How long one async_read_some may take. The first bytes end it, so this is how long the peer
  /// may be silent while somebody reads. A composed read, as async_read, consists of several
  /// async_read_some, each with the whole limit: a peer that sends a byte now and then meets
  /// `total` or the expiry, but never `read_idle`. Between two reads nothing is measured.
  detail::any_delay read_idle = std::chrono::nanoseconds::max();

  /// How long one async_write_some may take. It ends when the system has room in its send buffer.
  /// Linux says so when about a third of the buffer is free, so this is how long a peer may need
  /// for a third of a full buffer. On loopback a buffer grows to megabytes: a peer that takes
  /// some all the time may be too slow then. With a smaller send_buffer_size, say 64 KB, this is
  /// for how long a peer may accept almost no bytes. A composed write consists of several
  /// async_write_some, each with the whole limit. A connect counts as one write, with all its
  /// attempts.
  detail::any_delay write_stall = std::chrono::nanoseconds::max();

  /// How long all operations together may take, from the call of set_limits() on.
  detail::any_delay total = std::chrono::nanoseconds::max();
};

/// What has ended an operation of a timed_stream that timed out.
enum class stream_timeout : std::uint8_t {
  none,         ///< no operation has timed out
  expiry,       ///< the expiry of expires_after() or expires_at()
  read_idle,    ///< stream_limits::read_idle
  write_stall,  ///< stream_limits::write_stall
  total,        ///< stream_limits::total
};

}  // namespace asio_wheel
