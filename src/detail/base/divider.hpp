// L0 base: the division that finds a tick.
#pragma once

#include <cassert>
#include <cstdint>

namespace asio_wheel::detail {

/// The upper half of a product, made of 32-bit products.
[[nodiscard]] constexpr std::uint64_t multiply_high_by_halves(std::uint64_t a,
                                                              std::uint64_t b) noexcept
{
  constexpr std::uint64_t low = 0xffffffff;
  const std::uint64_t middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
  const std::uint64_t other = (a & low) * (b >> 32) + (middle & low);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

/// Divides by multiplying with the reciprocal. Each start of a wait divides, and a division of 64
/// bits takes a processor up to ninety cycles.
class divider {
public:
  const std::uint64_t divisor;

  /// Requires by != 0.
  explicit constexpr divider(std::uint64_t by) noexcept
    : divisor(by),
      reciprocal_(~std::uint64_t{0} / by)
  {}

  /// Rounds down. Requires n < 2^63.
  [[nodiscard]] constexpr std::uint64_t divide(std::uint64_t n) const noexcept
  {
    assert(n >> 63 == 0);
    // The reciprocal is too small by at most (1 + 1/divisor) / 2^64. So the quotient, before
    // rounding down, is too small by less than 1.
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
