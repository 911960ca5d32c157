// Counts durations in steps of a sixteenth of their value.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simulate {

class histogram {
public:
  void add(std::chrono::nanoseconds d)
  {
    const std::size_t b =
      bucket_of(static_cast<std::uint64_t>(std::max<std::int64_t>(d.count(), 0)));
    if (b >= buckets_.size()) buckets_.resize(b + 1);
    ++buckets_[b];
    ++count_;
  }

  /// A bound that `p` percent of the durations do not exceed, exact to a sixteenth.
  std::chrono::nanoseconds percentile(double p) const
  {
    auto left = static_cast<double>(count_) * p / 100;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      left -= static_cast<double>(buckets_[b]);
      if (buckets_[b] && left <= 0) return end_of(b);
    }
    return {};
  }

  std::uint64_t count() const { return count_; }
  const std::vector<std::uint64_t>& buckets() const { return buckets_; }

  /// The duration at which a bucket ends.
  static std::chrono::nanoseconds end_of(std::size_t bucket)
  {
    if (bucket < fine) return std::chrono::nanoseconds(bucket);
    const std::size_t shift = bucket / fine - 1;
    return std::chrono::nanoseconds((bucket % fine + fine + 1) << shift);
  }

private:
  static constexpr std::size_t fine = 16;  // buckets from one power of two to the next

  static std::size_t bucket_of(std::uint64_t ns)
  {
    if (ns < fine) return ns;
    const auto shift = static_cast<std::size_t>(std::bit_width(ns) - std::bit_width(fine));
    return fine * shift + (ns >> shift);
  }

  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
};

}  // namespace simulate
