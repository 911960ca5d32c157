// L3 roof: how long something may be idle, depending on how busy the program is.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <chrono>

namespace asio_wheel {

/// The timeout of a watchdog that depends on the wheel's pressure p (wheel_timer_service's
/// set_pressure()): max - p * (max - min). With no pressure it is max, under full pressure min.
struct idle_window {
  std::chrono::nanoseconds min{};  ///< more than zero
  std::chrono::nanoseconds max{};  ///< at least min; nanoseconds::max() is never
};

}  // namespace asio_wheel
