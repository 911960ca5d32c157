// The earliest that a delay may end.
#pragma once

#include <algorithm>
#include <asio_wheel.hpp>
#include <chrono>

namespace support {

/// The earliest end of a delay that begins now. Trusts a coarse clock: on a busy virtual machine
/// the kernel's tick is late, so that clock can be behind by more than its grain, and the wheel
/// cannot know.
inline auto earliest(const asio_wheel::wheel_timer_service& wheel,
                     asio_wheel::wheel_timer_service::duration delay)
{
  const auto start = std::min(wheel.now(), std::chrono::steady_clock::now());
  return delay < start.max() - start ? start + delay : start.max();
}

}  // namespace support
