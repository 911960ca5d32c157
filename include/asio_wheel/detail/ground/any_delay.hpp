// L0 ground: delays and deadlines in any unit, converted to nanoseconds without overflow.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// `d` in nanoseconds, rounded up, so that nothing is early. The longest duration of every type,
/// and all that do not fit, become nanoseconds::max(), which is never; the shortest become min().
/// Not a number becomes zero.
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
    // In whole parts and a rest, as the product may be larger than the result.
    constexpr integer edge =
      std::numeric_limits<integer>::max() / unit::num - (unit::den == 1 ? 0 : 1);
    const auto whole = d.count() / static_cast<Rep>(unit::den);
    if (std::cmp_greater(whole, edge)) return nanoseconds::max();
    if (std::cmp_less(whole, -edge)) return nanoseconds::min();
    if constexpr (std::cmp_less_equal(from::max().count() / unit::den, edge))
      if (d == from::max()) return nanoseconds::max();
    if constexpr (from::min() < from::zero() &&
                  std::cmp_greater_equal(from::min().count() / unit::den, -edge))
      if (d == from::min()) return nanoseconds::min();
    const auto rest = static_cast<integer>(d.count() % static_cast<Rep>(unit::den));
    const integer part = rest * unit::num / unit::den;
    const bool is_up = rest > 0 && part * unit::den != rest * unit::num;
    return nanoseconds{static_cast<integer>(whole) * unit::num + part + (is_up ? 1 : 0)};
  }
}

/// A delay, made of a duration in any unit (see saturate()) or of what converts to nanoseconds.
class any_delay : public std::chrono::nanoseconds {
public:
  constexpr any_delay() noexcept : duration(zero()) {}

  template <class Rep, class Period>
  constexpr any_delay(const std::chrono::duration<Rep, Period>& d) noexcept : duration(saturate(d))
  {}
  template <std::convertible_to<std::chrono::nanoseconds> T>
  constexpr any_delay(const T& d) : duration(static_cast<std::chrono::nanoseconds>(d))
  {}
};

/// The same of a time point of the wheel's clock.
class any_deadline : public std::chrono::steady_clock::time_point {
public:
  constexpr any_deadline() noexcept : time_point() {}

  template <class Duration>
  constexpr any_deadline(
    const std::chrono::time_point<std::chrono::steady_clock, Duration>& t) noexcept
    : time_point(saturate(t.time_since_epoch()))
  {}
  template <std::convertible_to<std::chrono::steady_clock::time_point> T>
  constexpr any_deadline(const T& t)
    : time_point(static_cast<std::chrono::steady_clock::time_point>(t))
  {}
};

/// What a function takes that needs a `Time`: nanoseconds, or a time point of the wheel's clock.
template <class Time>
using any =
  std::conditional_t<std::same_as<Time, std::chrono::nanoseconds>, any_delay, any_deadline>;

}  // namespace asio_wheel::detail
