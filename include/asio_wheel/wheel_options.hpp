// L2 service: what a wheel can be told when it is made.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/detail/ground/export.hpp>

#include <chrono>
#include <cstddef>

namespace asio_wheel {

/// Where a wait that is given as a delay takes its starting point from.
enum class clock_source {
  precise,  ///< `std::chrono::steady_clock`
  coarse,   ///< the kernel's tick where it can be read: cheaper, and a delay lasts longer by up to
            ///< the grain of that clock (two ticks, usually 8 ms); shorter only where the host of
            ///< a virtual machine holds up the kernel's tick for longer than that
};

/// The most shards that a wheel can have.
inline constexpr std::size_t max_shards = 64;

/// The shape and the limits of a wheel.
struct wheel_options {
  /// Resolution of every deadline, 1 us to 24 h. A wait completes at the first tick that is not
  /// before its deadline.
  std::chrono::nanoseconds tick = std::chrono::milliseconds{1};

  /// Slots of the finest wheel, 1 to 65536; rounded up to a power of two, 2 at least.
  std::size_t slots = 1024;

  /// Independent parts, each with a lock of its own, up to 64; rounded up to a power of two.
  /// 0: as many as the machine has processors.
  std::size_t shards = 0;

  /// Waits that may be pending at once; those beyond it complete with
  /// `wheel_errc::too_many_pending`. 0: no limit.
  std::size_t max_pending = 0;

  /// What delays are counted from.
  clock_source clock = clock_source::precise;
};

/// The options as a wheel uses them: rounded, and with the number of shards filled in.
/// Throws std::invalid_argument that names the first bad value and its range.
[[nodiscard]] ASIO_WHEEL_EXPORT wheel_options resolve(wheel_options options);

}  // namespace asio_wheel
