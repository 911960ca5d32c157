// Plays a case for one seed after the other.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>

namespace support {

/// A number in the environment, or `otherwise`.
inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise)
{
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Calls `play(seed)` for `n` seeds, or as many as ASIO_WHEEL_SEEDS says, from
/// ASIO_WHEEL_FIRST_SEED on. A failure names its seed.
template <class Play>
void for_each_seed(std::uint64_t n, Play play)
{
  const std::uint64_t first = from_environment("ASIO_WHEEL_FIRST_SEED", 0);
  const std::uint64_t end = first + from_environment("ASIO_WHEEL_SEEDS", n);
  for (std::uint64_t seed = first; seed < end; ++seed) BOOST_TEST_CONTEXT("seed " << seed)
    {
      play(seed);
    }
}

}  // namespace support
