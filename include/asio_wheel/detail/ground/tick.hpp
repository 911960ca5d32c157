// L0 ground: the unit in which the wheel counts time, and the division that finds it.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>

namespace asio_wheel::detail {

/// A point on the wheel's own time line, counted in ticks since the wheel was made.
///
/// A strong type: it only orders and compares. Only `wheel_clock`, two floors up, knows how long a
/// tick lasts.
enum class tick : std::uint64_t {};

[[nodiscard]] constexpr std::uint64_t count(tick t) noexcept
{
  return static_cast<std::uint64_t>(t);
}

/// In place of the present tick, for those who do not know it.
inline constexpr tick at_once{};

/// The tick of a wait that never expires.
inline constexpr tick never{std::numeric_limits<std::uint64_t>::max() - 1};

/// No tick; compares greater than all others. An empty std::optional that fits in a register.
inline constexpr tick no_tick{count(never) + 1};

/// Adds without wrapping: a sum beyond the last tick is `never`.
[[nodiscard]] constexpr tick operator+(tick t, std::uint64_t n) noexcept
{
  return n < count(never) - count(t) ? tick{count(t) + n} : never;
}

/// The first tick of the aligned span of 2^bits ticks that contains `t`.
[[nodiscard]] constexpr tick span_begin(tick t, unsigned bits) noexcept
{
  return bits < 64 ? tick{(count(t) >> bits) << bits} : tick{};
}

/// The upper half of a product, made of 32-bit products.
[[nodiscard]] constexpr std::uint64_t multiply_high_by_halves(std::uint64_t a,
                                                              std::uint64_t b) noexcept
{
  constexpr std::uint64_t low = 0xffffffff;
  const std::uint64_t middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
  const std::uint64_t other = (a & low) * (b >> 32) + (middle & low);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

/// Divides by multiplying with the reciprocal. Each start of a wait needs a division, and one of 64
/// bits takes a processor up to ninety cycles.
class divider {
public:
  const std::uint64_t divisor;

  /// Requires that it is not 0.
  explicit constexpr divider(std::uint64_t by) noexcept
    : divisor(by),
      reciprocal_(~std::uint64_t{0} / by)
  {}

  /// Rounds down. Requires n < 2^63.
  [[nodiscard]] constexpr std::uint64_t divide(std::uint64_t n) const noexcept
  {
    assert(n >> 63 == 0);
    // The reciprocal is too small by at most (1 + 1/divisor) / 2^64, so the quotient by less than 1
    // before it is rounded down.
#if defined(__SIZEOF_INT128__)
    __extension__ using wide = unsigned __int128;
    const auto quotient = static_cast<std::uint64_t>(wide{n} * reciprocal_ >> 64);
#else
    const std::uint64_t quotient = multiply_high_by_halves(n, reciprocal_);
#endif
    return quotient + (n - quotient * divisor >= divisor);
  }

private:
  const std::uint64_t reciprocal_;
};

}  // namespace asio_wheel::detail
