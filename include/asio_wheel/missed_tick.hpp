// L3 timers: what happens when a tick that repeats is missed.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/base/any_delay.hpp>

#include <cstdint>

namespace asio_wheel {

/// When the next tick is due after a tick was taken too late. Too late means: the tick after it was
/// due, too, or it was late by more than 5 ms and more than two ticks of the wheel.
///
/// With a period of 10, and a consumer that takes no tick from 10 to 37:
/// ```text
///   burst   0  10  20* 30* 40  50  60     the old times; * are taken at 37
///   delay   0  10  20* 47  57  67         a whole period after the late one was taken
///   skip    0  10  20* 40  50  60         the next future time of the old rhythm
/// ```
enum class missed_tick : std::uint8_t {
  burst,  ///< at its old time: missed ticks follow each other until none is left
  delay,  ///< one period from now: the times of two ticks are at least one period apart
  skip,   ///< at the next future multiple of the period
};

namespace detail {
/// The tick after `tick`. `tick` is taken at `now`, not before its time. A tick that is late by at
/// most `slack` is not missed. Saturates: time_point::max() is never.
[[nodiscard]] ASIO_WHEEL_EXPORT time_point tick_after(time_point tick, duration period,
                                                      time_point now, missed_tick missed,
                                                      duration slack) noexcept;

/// Throws std::invalid_argument, naming `what` and its value, unless the value is more than zero.
ASIO_WHEEL_EXPORT void require_positive(const char* what, duration value);
}  // namespace detail

}  // namespace asio_wheel
