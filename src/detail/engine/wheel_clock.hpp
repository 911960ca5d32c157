// L2 engine: reads the time. Only the wheel_clock converts it to ticks and back.
#pragma once

#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/wheel/wheel_entry.hpp>
#include <asio_wheel/wheel_options.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace asio_wheel::detail {

/// The clock of a wheel. Tick 0 begins when the clock is made.
///
/// Deadlines round up to a tick and now rounds down. So tick_ceil(deadline) <= tick_floor(now)
/// implies deadline <= now: a wheel that advances to tick_floor(now) never completes a wait early.
///
/// It runs with `clock_type`, except while a virtual_time has stopped it.
class wheel_clock {
public:
  wheel_clock(clock_source source, std::chrono::nanoseconds tick_length);
  wheel_clock(const wheel_clock&) = delete;
  wheel_clock& operator=(const wheel_clock&) = delete;
  ~wheel_clock();

  /// The present: deadlines pass by this time. Never ahead of clock_type, nor of start_of_delay()
  /// of a coarse clock, so no wait is early by either.
  [[nodiscard]] ASIO_WHEEL_EXPORT time_point now() const noexcept;

  /// Returns true if `deadline` is now or earlier. A coarse reading is enough for a deadline
  /// clearly ahead, as most new deadlines are. If the kernel is behind with its ticks, a deadline
  /// that has just passed may be taken for ahead.
  [[nodiscard]] ASIO_WHEEL_EXPORT bool has_surely_passed(time_point deadline) const noexcept;

  /// now() as if the clock ran.
  [[nodiscard]] ASIO_WHEEL_EXPORT time_point running_now() const noexcept;

  // Stop and move the clock. The owner makes sure that only one thread does so at a time.
  void stop_at(time_point t) noexcept;
  void run() noexcept;
  [[nodiscard]] bool is_stopped() const noexcept
  {
    return stopped_at_.load(std::memory_order_relaxed) != 0;
  }

  /// Blocks the thread for a while, at most until `deadline`.
  ASIO_WHEEL_EXPORT void sleep_towards(time_point deadline) const;

  /// The time at which a delay begins: now() or, with a coarse clock, up to its grain later.
  [[nodiscard]] ASIO_WHEEL_EXPORT time_point start_of_delay() const noexcept;

  /// start_of_delay() without a clock: all clocks of one kind read the same. The caller reads the
  /// time before it loads its wheel from memory, so that the cache miss overlaps with the reading.
  /// `unknown` if the process has clocks of both kinds, or a stopped clock.
  [[nodiscard]] static time_point early_start_of_delay() noexcept;
  static constexpr time_point unknown{};  ///< no reading: long past

  /// early_start_of_delay() if known, else start_of_delay() of `*clock`. In the first case neither
  /// the pointer nor the clock is read.
  [[nodiscard]] static time_point start_of_delay(const wheel_clock* const& clock) noexcept;

  /// The deadline `delay` from now, counted from `early` if known, else from start_of_delay().
  [[nodiscard]] ASIO_WHEEL_EXPORT time_point
  deadline_after(duration delay, time_point early = unknown) const noexcept;

  /// The first tick that is not before `t`; `never` for time_point::max().
  [[nodiscard]] tick tick_ceil(time_point t) const noexcept;

  /// The last tick that is not after `t`.
  [[nodiscard]] tick tick_floor(time_point t) const noexcept;

  /// The tick under which to file a deadline: the first that is not before it, or `at_once` if the
  /// deadline has passed.
  [[nodiscard]] ASIO_WHEEL_EXPORT tick tick_for(time_point deadline) const noexcept;

  /// tick_for() the deadline `delay` from now.
  [[nodiscard]] ASIO_WHEEL_EXPORT tick tick_for(duration delay) const noexcept;

  /// When a tick begins; time_point::max() if there is none, or if it is beyond all time points.
  [[nodiscard]] time_point time_of(maybe_tick t) const noexcept;

private:
  /// The number of clocks of each kind in the process, and the grain of the coarse ones. A stopped
  /// clock counts as both kinds.
  struct alignas(64) population {
    std::atomic<int> precise;
    std::atomic<int> coarse;
    std::atomic<duration> grain;
  };
  static population clocks;

  /// early_start_of_delay() if there is a coarse clock.
  [[nodiscard]] static time_point early_start_of_coarse_delay() noexcept;

  /// A time not before the present, and at most the coarse clock's grain after it.
  [[nodiscard]] ASIO_WHEEL_EXPORT time_point soon() const noexcept;

  time_point origin_;
  std::uint64_t tick_ns_;
  tick last_;                                 ///< the last tick that begins at a time point
  duration grain_;                            ///< of the coarse clock; zero without one
  bool is_coarse_;                            ///< delays begin by the coarse clock
  std::atomic<duration::rep> stopped_at_{0};  ///< 0: the clock runs
};

inline time_point wheel_clock::early_start_of_delay() noexcept
{
  // The caller's clock exists, so it is counted.
  return clocks.coarse.load(std::memory_order_relaxed) == 0 ? clock_type::now()
                                                            : early_start_of_coarse_delay();
}

inline time_point wheel_clock::start_of_delay(const wheel_clock* const& clock) noexcept
{
  const time_point early = early_start_of_delay();
  return early != unknown ? early : clock->start_of_delay();
}

}  // namespace asio_wheel::detail
