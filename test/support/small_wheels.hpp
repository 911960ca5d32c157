// What the wheel's own tests have in common.
#pragma once

#include <detail/wheel/timing_wheel.hpp>

#include <functional>

/// Levels of eight slots, each of which spans one slot of the next level. They reach corners that a
/// large wheel hides.
inline constexpr asio_wheel::detail::wheel_geometry tight{.slot_bits = 3, .fan_bits = 3};

/// A slot of level 1 spans 16 ticks, and its cascade may take as many. A piece is a chunk.
inline constexpr asio_wheel::detail::wheel_geometry roomy{
  .slot_bits = 6, .fan_bits = 4, .piece = 1};

/// For entries of an array that is inserted from front to back.
inline bool lies_before(const asio_wheel::detail::wheel_entry& a,
                        const asio_wheel::detail::wheel_entry& b)
{
  return std::less<>()(&a, &b);
}
