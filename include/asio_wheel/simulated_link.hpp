// L3 timers: what a simulated connection is like, and what can go wrong with it.
#pragma once

#include <asio_wheel/detail/base/requirements.hpp>

#include <asio_wheel/detail/base/any_delay.hpp>

#include <cstddef>
#include <cstdint>

namespace asio_wheel {

/// How bytes travel between the two ends of a simulated connection, the same both ways.
///
/// Bytes are sent in segments of up to 1,460. They arrive in order: one that is late holds up those
/// behind it.
struct simulated_link {
  /// From the moment a byte has left to the moment it arrives.
  detail::any_delay latency{};

  /// Added to the latency of each segment: a random part of this.
  detail::any_delay jitter{};

  /// How fast bytes leave. 0: at once.
  std::size_t bytes_per_second = 0;

  /// How many bytes an end may have sent that its peer has not read: a write waits for room, so a
  /// peer that takes nothing holds it up. Room is made as soon as the peer reads. At least 1.
  std::size_t send_buffer = 65536;

  /// Of all that is random. The same seed and the same calls at the same times give the same order
  /// and the same times.
  std::uint64_t seed = 1;

  /// The share of segments that are lost, 0 to 1. A lost one arrives 200 ms and two latencies
  /// later, as if it was sent again once.
  double loss = 0;
};

/// What happens to the bytes that one end of a simulated connection sends.
struct simulated_fault {
  /// The kinds of faults.
  enum kind_type {
    stall,       ///< they stay on the way
    resume,      ///< and go on
    reset,       ///< pending and later operations of both ends fail with connection_reset, and what
                 ///< was not read is lost
    half_close,  ///< an end of stream follows them
    drop,        ///< nothing arrives any more, in either direction, and nobody is told
    chunk,       ///< no read or write of this end moves more than `bytes`; 0: no limit any more
  };

  /// Converts from the kind. `n` is for `chunk`.
  constexpr simulated_fault(kind_type k, std::size_t n = 0) noexcept : kind(k), bytes(n) {}

  kind_type kind;     ///< what happens
  std::size_t bytes;  ///< of a chunk
};

}  // namespace asio_wheel
