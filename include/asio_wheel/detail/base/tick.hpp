// L0 base: the unit in which the wheel counts time.
#pragma once

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

/// In place of the present tick, where it is not known.
inline constexpr tick at_once{};

/// The tick of a wait that never expires.
inline constexpr tick never{std::numeric_limits<std::uint64_t>::max() - 1};

/// No tick; compares greater than all ticks. An empty std::optional that fits in a register.
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

}  // namespace asio_wheel::detail
