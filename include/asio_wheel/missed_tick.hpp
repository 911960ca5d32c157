// L3 roof: what becomes of times that repeat when one of them is missed.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <cstdint>

namespace asio_wheel {

/// When the next tick is due after one that was taken too late: so late that the one after it was
/// due too, or by more than 5 ms and more than two ticks of the wheel.
///
/// With a period of 10 and a consumer that is away from 10 to 37:
/// ```text
///   burst   0  10  20* 30* 40  50  60     as if nothing had happened; * are taken at 37
///   delay   0  10  20* 47  57  67         a whole period after the late one was taken
///   skip    0  10  20* 40  50  60         the next in the old rhythm that is still to come
/// ```
enum class missed_tick : std::uint8_t {
  burst,  ///< at the time it always had: missed ticks follow each other until it has caught up
  delay,  ///< one period from now: two ticks are never closer than the period
  skip,   ///< at the next multiple of the period that lies ahead
};

}  // namespace asio_wheel
