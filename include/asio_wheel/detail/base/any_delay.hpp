// L0 base: delays and deadlines in any unit, converted to nanoseconds without overflow.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

using clock_type = std::chrono::steady_clock;  ///< the clock of all deadlines
using time_point = clock_type::time_point;     ///< a deadline; max() is never
using duration = clock_type::duration;         ///< a delay; max() is for ever

/// `d` in nanoseconds, rounded up, so that nothing is early. A duration that does not fit, and the
/// longest of every type, become nanoseconds::max(): never. The shortest become min(). Not a number
/// becomes zero.
template <class Rep, class Period>
[[nodiscard]] constexpr std::chrono::nanoseconds saturate(
  const std::chrono::duration<Rep, Period>& d) noexcept
{
  using std::chrono::nanoseconds;
  using from = std::chrono::duration<Rep, Period>;
  using unit = std::ratio_divide<Period, std::nano>;
  using integer = std::int64_t;
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    constexpr long double end = 9223372036854775808.0L;  // 2^63 ns
    constexpr long double edge = end / unit::num * unit::den;
    const auto n = static_cast<long double>(d.count());
    if (!(n == n)) return nanoseconds::zero();
    if (n >= edge || d == from::max()) return nanoseconds::max();
    if (n <= -edge || d == from::min()) return nanoseconds::min();
    const long double exact = n * unit::num / unit::den;
    if (exact >= end) return nanoseconds::max();
    if (exact <= -end) return nanoseconds::min();
    const auto down = static_cast<integer>(exact);
    return nanoseconds{down + (static_cast<long double>(down) < exact ? 1 : 0)};
  } else if constexpr (std::same_as<from, nanoseconds>) {
    return d;
  } else {
    // Converts whole parts and the rest apart, as the product may be larger than the result.
    constexpr integer edge =
      std::numeric_limits<integer>::max() / unit::num - (unit::den == 1 ? 0 : 1);
    using wide =
      std::conditional_t<std::integral<Rep> && (sizeof(Rep) < sizeof(integer)), integer, Rep>;
    const wide count = d.count();
    const auto whole = count / static_cast<wide>(unit::den);
    if (std::cmp_greater(whole, edge)) return nanoseconds::max();
    if (std::cmp_less(whole, -edge)) return nanoseconds::min();
    if constexpr (std::cmp_less_equal(from::max().count() / unit::den, edge))
      if (d == from::max()) return nanoseconds::max();
    if constexpr (from::min() < from::zero() &&
                  std::cmp_greater_equal(from::min().count() / unit::den, -edge))
      if (d == from::min()) return nanoseconds::min();
    const auto rest = static_cast<integer>(count % static_cast<wide>(unit::den));
    const integer part = rest * unit::num / unit::den;
    const bool is_up = rest > 0 && part * unit::den != rest * unit::num;
    return nanoseconds{static_cast<integer>(whole) * unit::num + part + (is_up ? 1 : 0)};
  }
}

/// As saturate(), in the unit of another clock.
template <class Duration, class Rep, class Period>
[[nodiscard]] constexpr Duration saturate_to(const std::chrono::duration<Rep, Period>& d) noexcept
{
  if constexpr (std::same_as<Duration, std::chrono::duration<Rep, Period>>) {
    return d;
  } else {
    const std::chrono::nanoseconds ns = saturate(d);
    if (ns >= saturate(Duration::max())) return Duration::max();
    if (ns <= saturate(Duration::min())) return Duration::min();
    const auto down = std::chrono::duration_cast<Duration>(ns);
    if constexpr (std::chrono::treat_as_floating_point_v<typename Duration::rep>) return down;
    return down < ns ? down + Duration{1} : down;
  }
}

/// `t - origin`; saturates.
template <class TimePoint>
[[nodiscard]] constexpr typename TimePoint::duration difference(TimePoint t,
                                                                TimePoint origin) noexcept
{
  using units = typename TimePoint::duration;
  const units o = origin.time_since_epoch();
  if (o < units::zero() && t > TimePoint::max() + o) return units::max();
  if (o > units::zero() && t < TimePoint::min() + o) return units::min();
  return t - origin;
}

/// `t + d`; saturates.
template <class TimePoint>
[[nodiscard]] constexpr TimePoint sum(TimePoint t, typename TimePoint::duration d) noexcept
{
  using units = typename TimePoint::duration;
  if (d > units::zero() && t > TimePoint::max() - d) return TimePoint::max();
  if (d < units::zero() && t < TimePoint::min() - d) return TimePoint::min();
  return t + d;
}

/// A delay, made of a duration in any unit (see saturate()) or of anything that converts to
/// `Duration`.
template <class Duration>
class any_duration : public Duration {
public:
  constexpr any_duration() noexcept : Duration(Duration::zero()) {}

  template <class Rep, class Period>
  constexpr any_duration(const std::chrono::duration<Rep, Period>& d) noexcept
    : Duration(saturate_to<Duration>(d))
  {}
  template <std::convertible_to<Duration> T>
  constexpr any_duration(const T& d) : Duration(static_cast<Duration>(d))
  {}
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  any_duration(Number) = delete;  // a number needs a unit: 5s, not 5
};

/// A time point of a clock, made of a time point in any unit or of anything that converts to
/// `TimePoint`.
template <class TimePoint>
class any_time_point : public TimePoint {
public:
  constexpr any_time_point() noexcept : TimePoint() {}

  template <class Duration>
  constexpr any_time_point(
    const std::chrono::time_point<typename TimePoint::clock, Duration>& t) noexcept
    : TimePoint(saturate_to<typename TimePoint::duration>(t.time_since_epoch()))
  {}
  template <std::convertible_to<TimePoint> T>
  constexpr any_time_point(const T& t) : TimePoint(static_cast<TimePoint>(t))
  {}
};

using any_delay = any_duration<std::chrono::nanoseconds>;
using any_deadline = any_time_point<std::chrono::steady_clock::time_point>;

/// The parameter type of a function that needs a `Time`: nanoseconds, or a time point of the
/// wheel's clock.
template <class Time>
using any =
  std::conditional_t<std::same_as<Time, std::chrono::nanoseconds>, any_delay, any_deadline>;

}  // namespace asio_wheel::detail
