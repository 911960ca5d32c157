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
/// adaptive timeouts, a piece in each pass. A sweep files timeouts again that are due soon. It also
/// finds out when the next sweep is needed: before the first of the others is due. Once the longest
/// timeout has passed since the rise, everything filed under less pressure has come up, and no
/// further sweep is needed.
///
/// A pause follows each sweep, so that sweeps take a bounded part of the time, however often the
/// pressure rises. What may be due before the next sweep has ended is due soon.
class pressure {
public:
  explicit pressure(const wheel_clock& clock) noexcept : clock_(clock) {}

  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

  /// Sets the pressure. Returns when to sweep; time_point::max() if no sweep is needed.
  [[nodiscard]] time_point set(double p) noexcept;

  /// Sweeps a piece, if it is time. Returns true if the sweep has not ended.
  [[nodiscard]] bool sweep() noexcept;

  /// When the next piece is needed. May be in the past; time_point::max() is never.
  [[nodiscard]] time_point next_sweep() const noexcept
  {
    return left_ != 0 ? time_point{} : next_sweep_.load();
  }

  /// Includes `a` in sweeps. Throws std::bad_alloc.
  void add(adaptive& a);

  /// Does nothing if `a` is not in the list.
  void remove(adaptive& a) noexcept;

  /// Keeps sweeps away while an adaptive timeout moves.
  [[nodiscard]] std::unique_lock<spin_lock> lock_sweep() noexcept
  {
    return std::unique_lock<spin_lock>(mutex_);
  }

  /// `to` takes the place of `from`. Requires lock_sweep().
  void replace(adaptive& from, adaptive& to) noexcept;

private:
  [[nodiscard]] bool is_due_soon(const adaptive& a, time_point now) noexcept
    ASIO_WHEEL_REQUIRES(mutex_);
  [[nodiscard]] duration pause() const noexcept ASIO_WHEEL_REQUIRES(mutex_);

  const wheel_clock& clock_;
  std::atomic<double> value_{0};

  // Read without the lock: a thread that makes the next sweep earlier requests a pass afterwards.
  std::atomic<time_point> next_sweep_{time_point::max()};  ///< during a sweep: the sweep after it
  std::atomic<std::size_t> left_{0};                       ///< timeouts the sweep has yet to see

  spin_lock mutex_;  ///< taken before the shards' locks

  /// In no order. A deque grows without moving its elements, so add() holds the lock for a short
  /// time only.
  std::deque<adaptive*> all_ ASIO_WHEEL_GUARDED_BY(mutex_);
  time_point last_rise_ ASIO_WHEEL_GUARDED_BY(mutex_){};
  time_point pause_ends_ ASIO_WHEEL_GUARDED_BY(mutex_){};
};

}  // namespace asio_wheel::detail
