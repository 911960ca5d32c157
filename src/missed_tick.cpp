// L3 timers: which tick follows a tick.
#include <asio_wheel/missed_tick.hpp>

#include "detail/engine/fail_invalid.hpp"

namespace asio_wheel::detail {

time_point tick_after(time_point tick, duration period, time_point now, missed_tick missed,
                      duration slack) noexcept
{
  // Unsigned, because a duration cannot hold the span between the ends of time.
  const auto nanoseconds = [](auto t) { return static_cast<std::uint64_t>(t.count()); };
  const std::uint64_t late =
    nanoseconds(now.time_since_epoch()) - nanoseconds(tick.time_since_epoch());

  if (missed == missed_tick::skip) {
    const auto since_last = static_cast<duration::rep>(late % nanoseconds(period));
    return sum(now - duration{since_last}, period);
  }
  const bool is_missed = late >= nanoseconds(period) || late > nanoseconds(slack);
  return sum(missed == missed_tick::delay && is_missed ? now : tick, period);
}

void require_positive(const char* what, duration value)
{
  if (value <= duration::zero())
    fail_invalid("%s is %lldns; it must be more than 0ns", what, in_ns(value));
}

}  // namespace asio_wheel::detail
