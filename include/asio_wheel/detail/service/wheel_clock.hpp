// L2 service: reading the time, and the one place that converts it to ticks and back.
#pragma once

#include <asio_wheel/detail/ground/divider.hpp>
#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/tick.hpp>
#include <asio_wheel/wheel_options.hpp>

#include <atomic>
#include <chrono>

namespace asio_wheel::detail {

using clock_type = std::chrono::steady_clock;  ///< the clock of all deadlines
using time_point = clock_type::time_point;     ///< a deadline; max() is never
using duration = clock_type::duration;         ///< a delay; max() is for ever

/// The clock of a wheel: tick 0 begins when it is made.
///
/// Deadlines round up to a tick and now rounds down. So whenever tick_ceil(deadline) <=
/// tick_floor(now), deadline <= now: a wheel that is advanced to tick_floor(now) never completes
/// a wait early.
///
/// It runs with `clock_type`, other than while a virtual_time has stopped it.
class wheel_clock {
public:
  wheel_clock(clock_source source, std::chrono::nanoseconds tick_length);
  wheel_clock(const wheel_clock&) = delete;
  wheel_clock& operator=(const wheel_clock&) = delete;
  ~wheel_clock();

  /// By which deadlines have passed. Never ahead of clock_type, nor, with a coarse clock, of
  /// start_of_delay(): so no wait is early by either.
  [[nodiscard]] time_point now() const noexcept
  {
    const auto stopped = stopped_at_.load(std::memory_order_relaxed);
    return stopped == 0 ? running_now() : time_point{duration{stopped}};
  }

  /// What now() says when the clock is not stopped.
  [[nodiscard]] time_point running_now() const noexcept
  {
    return coarse_grain_ == duration{} ? clock_type::now() : coarse_running_now();
  }

  // Stopping and moving the clock. Its owner sees to it that only one does so at a time.
  void stop_at(time_point t) noexcept;
  void run() noexcept;
  [[nodiscard]] bool is_stopped() const noexcept
  {
    return stopped_at_.load(std::memory_order_relaxed) != 0;
  }

  /// Blocks the thread for a while, and for no longer than until `deadline`.
  ASIO_WHEEL_EXPORT void sleep_towards(time_point deadline) const;

  /// Where a delay begins: a reading that is not before now(), and after it by no more than the
  /// coarse clock's grain.
  [[nodiscard]] ASIO_WHEEL_EXPORT time_point start_of_delay() const noexcept;

  /// The same for whatever clock it will turn out to be, while the memory comes that says so: the
  /// time cannot be read while a load is outstanding. `unknown` if the clocks of the process are
  /// not all of one kind, or one is stopped.
  [[nodiscard]] static time_point early_start_of_delay() noexcept;
  static constexpr time_point unknown{};  ///< which is long past

  /// start_of_delay() of the clock that `clock` points to, an early one if there is any: then
  /// neither the pointer nor the clock is looked at.
  [[nodiscard]] static time_point start_of_delay(const wheel_clock* const& clock) noexcept
  {
    const time_point early = early_start_of_delay();
    return early != unknown ? early : clock->start_of_delay();
  }

  /// `start + delay`. Saturates: time_point::max() is never.
  [[nodiscard]] static time_point add(time_point start, duration delay) noexcept
  {
    // Readings are positive, so only a positive delay can overflow.
    return delay < time_point::max() - start ? start + delay : time_point::max();
  }

  /// The deadline `delay` from now, counted from start_of_delay(), be it an early one.
  [[nodiscard]] time_point deadline_after(duration delay,
                                          time_point early = unknown) const noexcept;

  /// The first tick that is not before `t`; `never` for time_point::max().
  [[nodiscard]] tick tick_ceil(time_point t) const noexcept;

  /// The last tick that is not after `t`.
  [[nodiscard]] tick tick_floor(time_point t) const noexcept;

  /// The tick to file a deadline under: the first that is not before it, unless the deadline has
  /// passed and that tick has not. Then it is the present one, so that the wait is due at once and
  /// yet behind all that was due before.
  [[nodiscard]] tick tick_for(time_point deadline) const noexcept;

  /// The same for a deadline that `delay` led to, which spares a look at the clock.
  [[nodiscard]] tick tick_for(time_point deadline, duration delay) const noexcept
  {
    return delay > duration::zero() ? tick_ceil(deadline) : tick_for(deadline);
  }

  /// When a tick begins; time_point::max() if that is beyond all time points.
  [[nodiscard]] time_point time_of(tick t) const noexcept;

private:
  [[nodiscard]] std::uint64_t since_origin(time_point t) const noexcept;
  [[nodiscard]] ASIO_WHEEL_EXPORT time_point coarse_running_now() const noexcept;

  time_point origin_;
  divider tick_ns_;
  tick last_;                                 ///< that begins at a time point
  duration coarse_grain_{};                   ///< zero: the clock is read precisely
  std::atomic<duration::rep> stopped_at_{0};  ///< 0, which is long past: the clock runs
};

}  // namespace asio_wheel::detail
