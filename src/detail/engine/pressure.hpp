// L2 engine: the pressure, how busy the program says it is, and all deadlines that depend on it.
#pragma once

#include <asio_wheel/detail/engine/pressure.hpp>

#include "../base/locks.hpp"
#include "wheel_clock.hpp"

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>

namespace asio_wheel::detail {

/// The pressure, and all deadlines that depend on it.
///
/// Falling pressure needs no work: a wait learns that its deadline is later when it comes up
/// (lazy_state.hpp). Rising pressure makes all deadlines earlier at once, each by another time, and
/// touches have moved them before without notice. So passes (driver.hpp) **sweep** the list of all
/// adaptive timeouts, a piece in each pass. A sweep files timeouts again that are due soon: within
/// a 32nd of their length. It also finds out when the next sweep is needed: before the first of the
/// others is due. Once the longest timeout has passed since the rise, everything filed under less
/// pressure has come up, and no further sweep is needed.
///
/// A pause follows each sweep, so that sweeps take a bounded part of the time, however often the
/// pressure rises.
class pressure {
public:
  explicit pressure(const wheel_clock& clock) noexcept : clock_(clock) {}

  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

  /// Sets the pressure. Returns when to sweep; time_point::max() if no sweep is needed.
  [[nodiscard]] time_point set(double p) noexcept;

  /// Sweeps a piece, if it is time. Returns when the next piece is needed; time_point::max() for
  /// never.
  [[nodiscard]] time_point sweep() noexcept;
  static constexpr time_point at_once{};

  /// When the next piece is needed. May be in the past.
  [[nodiscard]] time_point next_sweep() const noexcept { return next_sweep_; }

  /// Includes `a` in sweeps. Throws std::bad_alloc.
  void add(adaptive& a);
  void remove(adaptive& a) noexcept;

  /// Keeps sweeps away while an adaptive timeout moves.
  [[nodiscard]] std::unique_lock<spin_lock> lock_sweep() noexcept
  {
    return std::unique_lock<spin_lock>(mutex_);
  }

  /// `to` takes the place of `from`. Requires lock_sweep().
  void replace(adaptive& from, adaptive& to) noexcept;

private:
  void put(adaptive& a, std::size_t place) noexcept ASIO_WHEEL_REQUIRES(mutex_);

  // A piece takes less than a millisecond: it ends after `most_seen` timeouts, or `most_filed`
  // filed again.
  static constexpr std::size_t most_seen = 4096;
  static constexpr std::size_t most_filed = 64;

  static constexpr duration pause{40};  ///< after a sweep, for each timeout in the list

  [[nodiscard]] bool is_due_soon(const adaptive& a, time_point now) noexcept
    ASIO_WHEEL_REQUIRES(mutex_);
  void end_sweep(time_point now) noexcept ASIO_WHEEL_REQUIRES(mutex_);
  [[nodiscard]] time_point end_of_pause() const noexcept ASIO_WHEEL_REQUIRES(mutex_);

  const wheel_clock& clock_;
  std::atomic<double> value_{0};

  /// Read without the lock: a thread that makes it earlier requests a pass afterwards.
  std::atomic<time_point> next_sweep_{time_point::max()};

  spin_lock mutex_;  ///< taken before the shards' locks

  /// In no order. A deque grows without moving its elements, so add() holds the lock for a short
  /// time only.
  std::deque<adaptive*> all_ ASIO_WHEEL_GUARDED_BY(mutex_);
  time_point last_rise_ ASIO_WHEEL_GUARDED_BY(mutex_){};

  /// How many timeouts the sweep has yet to see.
  std::size_t left_ ASIO_WHEEL_GUARDED_BY(mutex_) = 0;
  bool risen_again_ ASIO_WHEEL_GUARDED_BY(mutex_) = false;  ///< since the sweep began
  /// When the first timeout seen and not filed is due soon.
  time_point next_due_soon_ ASIO_WHEEL_GUARDED_BY(mutex_){};
  time_point ended_ ASIO_WHEEL_GUARDED_BY(mutex_){};  ///< when the latest sweep ended
};

}  // namespace asio_wheel::detail
