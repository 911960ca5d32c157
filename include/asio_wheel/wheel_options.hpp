// L2 engine: the options of a wheel.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/base/any_delay.hpp>

#include <chrono>
#include <cstddef>

namespace asio_wheel {

/// The clock from which a wait's delay is counted.
enum class clock_source {
  precise,  ///< `std::chrono::steady_clock`
  coarse,   ///< the kernel's tick, where readable: cheaper, and a delay lasts longer by up to
            ///< the grain of that clock (two ticks, usually 8 ms). A delay can be too short only if
            ///< the host of a virtual machine holds up the kernel's tick for longer than the grain
};

/// The most shards that a wheel can have.
inline constexpr std::size_t max_shards = 64;

/// The shape and the limits of a wheel.
struct wheel_options {
  /// Resolution of every deadline, 1 us to 24 h. A wait completes at the first tick that is not
  /// before its deadline.
  detail::any_delay tick = std::chrono::milliseconds{1};

  /// Slots of the finest level, 1 to 65536; rounded up to a power of two, 2 at least.
  std::size_t slots = 1024;

  /// Independent parts, each with its own lock, up to 64; rounded up to a power of two. A shard is
  /// made when a thread first needs it. 0: one for each processor, 64 at most.
  std::size_t shards = 0;

  /// How many waits may be pending at once. Further waits complete with
  /// `wheel_errc::too_many_pending`. The deadline of an operation is a wait unless it is never; a
  /// wait for duration::max() is one. All operations of one guard or timed_stream share one wait;
  /// when it expires, each takes a place until it has been told, also beyond the limit. 0: no
  /// limit.
  std::size_t max_pending = 0;

  /// The clock from which delays are counted.
  clock_source clock = clock_source::precise;
};

/// Rounds the options and fills in the number of shards, as make_wheel() does. Throws
/// std::invalid_argument, naming the first bad value and its range.
[[nodiscard]] ASIO_WHEEL_EXPORT wheel_options resolve(wheel_options options);

}  // namespace asio_wheel
