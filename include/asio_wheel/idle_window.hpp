// L3 timers: how long something may be idle, depending on how busy the program is.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/base/any_delay.hpp>

namespace asio_wheel {

/// The timeout of a watchdog that depends on the wheel's pressure p (wheel_timer_service's
/// set_pressure()): max - p * (max - min). With no pressure it is max, under full pressure min.
struct idle_window {
  detail::any_delay min{};  ///< more than zero
  detail::any_delay max{};  ///< at least min; the max() of any duration is never
};

}  // namespace asio_wheel
