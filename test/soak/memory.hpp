// How much memory the process uses, and whether it grows.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "support/resident.hpp"

namespace soak {

// A sanitizer's allocator keeps freed memory, and does not fill malloc's statistics.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool is_sanitized =
  __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool is_sanitized = false;
#endif

struct memory_use {
  double seconds = 0;         ///< since the start
  std::size_t resident = 0;   ///< bytes in RAM
  std::size_t allocated = 0;  ///< bytes that malloc gave out
};

/// Zeroes where the system does not say.
inline memory_use use_now(double seconds)
{
  memory_use use;
  use.seconds = seconds;
  use.resident = support::resident_memory();
#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 33)
  const auto heap = mallinfo2();
  use.allocated = heap.uordblks + heap.hblkhd;
#endif
#endif
  return use;
}

/// Readings over a run with a constant population, whose peak memory must be constant, too.
class memory_history {
public:
  void add(const memory_use& use) { readings_.push_back(use); }

  /// The peak of `what` between `from` and `to`, fractions of the run.
  [[nodiscard]] std::size_t most(std::size_t memory_use::*what, double from, double to) const
  {
    std::size_t result = 0;
    const double end = readings_.empty() ? 0 : readings_.back().seconds;
    for (const memory_use& use : readings_) {
      if (use.seconds >= from * end && use.seconds <= to * end)
        result = std::max(result, use.*what);
    }
    return result;
  }

  /// Whether the run was long enough for a verdict.
  [[nodiscard]] bool can_tell() const
  {
    return !is_sanitized && !readings_.empty() && readings_.back().seconds >= 8;
  }

  // The first quarter of the run warms everything up.
  static constexpr double warm = 0.25;
  static constexpr double middle = 0.625;

  [[nodiscard]] bool is_flat(std::size_t memory_use::*what) const
  {
    constexpr std::size_t noise = std::size_t{16} << 20;
    const std::size_t before = most(what, warm, middle);
    return most(what, middle, 1) <= before + before / 10 + noise;
  }

private:
  std::vector<memory_use> readings_;
};

}  // namespace soak
