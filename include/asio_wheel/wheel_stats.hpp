// L2 engine: a wheel's counters and its histogram of lateness.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace asio_wheel {

/// A histogram of durations in powers of two: bucket 0 counts zero, bucket i > 0 counts [2^(i-1),
/// 2^i) ns.
class ASIO_WHEEL_EXPORT log2_histogram {
public:
  /// Counts `d`; a negative duration counts as zero.
  void add(std::chrono::nanoseconds d) noexcept;

  /// Adds the counts of another histogram.
  log2_histogram& operator+=(const log2_histogram& other) noexcept;

  /// How many durations were counted.
  [[nodiscard]] std::uint64_t count() const noexcept;

  /// An upper bound of the `p`-th percentile: exact to a factor of two, and never above max(). Zero
  /// if nothing was counted.
  ///
  /// @param p  from 0 to 100; a value outside counts as the nearer end.
  [[nodiscard]] std::chrono::nanoseconds percentile(double p) const noexcept;

  /// The longest duration; zero if nothing was counted.
  [[nodiscard]] std::chrono::nanoseconds max() const noexcept { return max_; }

  /// The sum of all durations; no more than 292 years.
  [[nodiscard]] std::chrono::nanoseconds sum() const noexcept;

  /// The counts, bucket by bucket.
  [[nodiscard]] const std::array<std::uint64_t, 64>& buckets() const noexcept { return buckets_; }

private:
  std::array<std::uint64_t, 64> buckets_{};
  std::chrono::nanoseconds max_{};
  std::uint64_t sum_ns_ = 0;  ///< modulo 2^64
};

/// A histogram of how much of the allowed time was used, in powers of two from both ends: buckets
/// up to 1/128, 1/64 ... 1/2, and then 3/4, 7/8 ... 63/64 and all. So it is fine near the limit,
/// where an alarm belongs.
class ASIO_WHEEL_EXPORT share_histogram {
public:
  static constexpr std::size_t size = 13;  ///< of `bounds`

  /// The upper bounds of the buckets.
  static constexpr std::array<double, size> bounds{1 / 128., 1 / 64.,  1 / 32., 1 / 16., 1 / 8.,
                                                   1 / 4.,   1 / 2.,   3 / 4.,  7 / 8.,  15 / 16.,
                                                   31 / 32., 63 / 64., 1.};

  /// The counts, bucket by bucket.
  std::array<std::uint64_t, size> buckets{};

  /// The shares, added up.
  double sum = 0;

  /// How many shares were counted.
  [[nodiscard]] std::uint64_t count() const noexcept;

  /// The upper bound of the bucket of the `p`-th percentile; zero if nothing was counted.
  ///
  /// @param p  from 0 to 100; a value outside counts as the nearer end.
  [[nodiscard]] double percentile(double p) const noexcept;
};

/// A reading of a wheel's counters. All except `pending` and `abandoned` are since the wheel was
/// made.
///
/// The operations of one guard or timed_stream share a wait. The wait counts as started when the
/// first of them begins, and as `met` when the last of them has ended in time. So operations that
/// follow each other count as one each. When the wait expires, each operation that still runs adds
/// one to `started` and `expired`.
struct wheel_stats {
  std::uint64_t pending = 0;        ///< waits whose handlers have not begun and were not cancelled
  std::uint64_t started = 0;        ///< waits accepted
  std::uint64_t expired = 0;        ///< waits that reached their deadline
  std::uint64_t cancelled = 0;      ///< waits that ended with operation_aborted
  std::uint64_t met = 0;            ///< deadlines of operations that ended in time
  std::uint64_t abandoned = 0;      ///< operations that go on after abandon_after gave them up
  std::uint64_t rejected = 0;       ///< waits that ended with too_many_pending
  std::uint64_t wakeups = 0;        ///< times the wheel's steady_timer fired
  std::uint64_t cascaded = 0;       ///< moves of a wait to a finer level
  std::uint64_t largest_batch = 0;  ///< most waits delivered in a row until none was due

  /// How late expired waits were: from a wait's due tick to the begin of the function that called
  /// its handler. The deadline may lie up to one tick before that tick. A wait that starts after
  /// its deadline counts from the tick in which it starts, or from the wheel's latest pass if the
  /// pass is later.
  log2_histogram lateness;
};

}  // namespace asio_wheel
