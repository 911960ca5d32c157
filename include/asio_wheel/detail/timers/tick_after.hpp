// L3 timers: the arithmetic of times that repeat.
#pragma once

#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/missed_tick.hpp>

namespace asio_wheel::detail {

/// The tick after `tick`. `tick` is taken at `now`, not before its time. A tick that is late by at
/// most `slack` is not missed. Saturates: time_point::max() is never.
[[nodiscard]] ASIO_WHEEL_EXPORT time_point tick_after(time_point tick, duration period,
                                                      time_point now, missed_tick missed,
                                                      duration slack) noexcept;

/// Throws std::invalid_argument, naming `what` and its value, unless the value is more than zero.
ASIO_WHEEL_EXPORT void require_positive(const char* what, duration value);

}  // namespace asio_wheel::detail
