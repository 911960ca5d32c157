// L2 engine: the arithmetic of the histogram of durations.
#include <asio_wheel/wheel_stats.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace asio_wheel {

void log2_histogram::add(std::chrono::nanoseconds d) noexcept
{
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(d.count(), 0));
  ++buckets_[static_cast<std::size_t>(std::bit_width(ns))];
  max_ = std::max(max_, d);
  sum_ns_ += ns;
}

log2_histogram& log2_histogram::operator+=(const log2_histogram& other) noexcept
{
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  max_ = std::max(max_, other.max_);
  sum_ns_ += other.sum_ns_;
  return *this;
}

std::uint64_t log2_histogram::count() const noexcept
{
  return std::accumulate(buckets_.begin(), buckets_.end(), std::uint64_t{0});
}

std::chrono::nanoseconds log2_histogram::sum() const noexcept
{
  // A duration is less than twice the lower bound of its bucket. So if the sum has wrapped, it was
  // 2^64 at least, and `least` is 2^63 at least: more than the result can hold anyway.
  double least = 0;
  for (std::size_t i = 1; i < buckets_.size(); ++i)
    least += std::ldexp(static_cast<double>(buckets_[i]), static_cast<int>(i) - 1);
  const std::chrono::nanoseconds most = std::chrono::nanoseconds::max();
  if (least >= std::ldexp(1.0, 63) || sum_ns_ >= static_cast<std::uint64_t>(most.count()))
    return most;
  return std::chrono::nanoseconds(sum_ns_);
}

std::chrono::nanoseconds log2_histogram::percentile(double p) const noexcept
{
  const double wanted = std::ceil(static_cast<double>(count()) * std::clamp(p, 0.0, 100.0) / 100);
  double seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += static_cast<double>(buckets_[i]);
    if (seen >= wanted && seen > 0) {
      const auto upper = static_cast<std::int64_t>((std::uint64_t{1} << i) - 1);
      return std::min(max_, std::chrono::nanoseconds{upper});
    }
  }
  return max_;
}

}  // namespace asio_wheel
