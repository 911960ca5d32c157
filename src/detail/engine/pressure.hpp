// L2 engine: how busy the program says it is, and all deadlines that depend on that.
#pragma once

#include <asio_wheel/detail/engine/adaptive.hpp>

#include "../base/locks.hpp"
#include "wheel_clock.hpp"

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>

namespace asio_wheel::detail {

/// The pressure, and all deadlines that depend on it.
///
/// Falling pressure needs no work: a wait finds out that its deadline has moved back when the wait
/// comes up (lazy_state.hpp). Rising pressure moves all deadlines forward at once, each by a time
/// of its own, and touches have moved them before without a notice. So passes (driver.hpp)
/// **sweep** the list of all adaptive timeouts, a piece in each pass. A sweep files those again
/// that are due soon: within a 32nd of their timeout. It also finds out when the next sweep is
/// needed: before the first of the others is due. Once the longest timeout has passed since the
/// rise, everything filed under less pressure has come up, and no further sweep is needed.
///
/// After a sweep there is a pause, so that sweeps take a bounded part of the time however often the
/// pressure rises.
class pressure {
public:
  explicit pressure(const wheel_clock& clock) noexcept : clock_(clock) {}

  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

  /// Sets it. Returns when to sweep; time_point::max() if there is no need.
  [[nodiscard]] time_point set(double p) noexcept;

  /// Sweeps a piece, if it is time. Returns when the next piece is needed; time_point::max() if
  /// none is.
  [[nodiscard]] time_point sweep() noexcept;
  static constexpr time_point at_once{};

  /// When the next piece is needed. May be in the past.
  [[nodiscard]] time_point next_sweep() const noexcept { return next_sweep_; }

  /// From here on sweeps include `a`. Throws std::bad_alloc.
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

  // A piece takes less than a millisecond: it ends after so many timeouts, or so many that were
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

  /// Read without the lock: a thread that makes it earlier asks for a pass afterwards.
  std::atomic<time_point> next_sweep_{time_point::max()};

  spin_lock mutex_;  ///< taken before the shards' locks

  /// In no order. Grows without moving what is in it, so that add() holds the lock for a short
  /// time.
  std::deque<adaptive*> all_ ASIO_WHEEL_GUARDED_BY(mutex_);
  time_point last_rise_ ASIO_WHEEL_GUARDED_BY(mutex_){};

  /// The sweep under way has yet to see the first so many.
  std::size_t left_ ASIO_WHEEL_GUARDED_BY(mutex_) = 0;
  bool risen_again_ ASIO_WHEEL_GUARDED_BY(mutex_) = false;  ///< since the sweep began
  /// When the first of those seen and not filed will be due soon.
  time_point next_due_soon_ ASIO_WHEEL_GUARDED_BY(mutex_){};
  time_point ended_ ASIO_WHEEL_GUARDED_BY(mutex_){};  ///< when the latest sweep did
};

}  // namespace asio_wheel::detail
