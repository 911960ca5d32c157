// The earliest that a delay may end.
#pragma once

#include <algorithm>
#include <asio_wheel.hpp>
#include <chrono>

namespace support {

/// When a delay that begins from now on may end. A coarse clock is taken at its word: it is further
/// behind than its grain where the kernel's tick is late, as on a virtual machine whose processors
/// are in demand, and then the wheel cannot know better.
inline auto earliest(const asio_wheel::wheel_timer_service& wheel,
                     asio_wheel::wheel_timer_service::duration delay)
{
  const auto start = std::min(wheel.now(), std::chrono::steady_clock::now());
  return delay < start.max() - start ? start + delay : start.max();
}

}  // namespace support
