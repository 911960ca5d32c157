// L3 timers: when a task of a keyed_scheduler runs.
#pragma once

#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/lazy_state.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace asio_wheel::detail {

inline constexpr std::size_t unlimited_times = std::numeric_limits<std::size_t>::max();

/// What can be scheduled: a function without arguments, called any number of times.
template <class F>
concept task_function = std::move_constructible<F> && std::invocable<F&>;

/// A task of a keyed_scheduler without its key: when it runs, and the wait for its run. A derived
/// class holds its function.
///
/// The wait's deadline is the task's **turn**: moving the turn moves the wait. A run begins with
/// the wait's handler. If another run follows, the next wait is announced to the shard at that
/// moment. So a cancel of all waits during the run also cancels the announced wait. The scheduler
/// starts it when the run is over. A task is **over** as its last run begins, or when it is
/// cancelled.
///
/// The lock of the waits' shard guards all members, so do not call these functions under another
/// lock.
class ASIO_WHEEL_EXPORT scheduled_task : public lazy_state {
public:
  /// Runs after `delay`, and then `times - 1` more times, `delay` apart.
  scheduled_task(wheel_core& c, duration delay, std::size_t times) noexcept;
  scheduled_task(const scheduled_task&) = delete;
  scheduled_task& operator=(const scheduled_task&) = delete;
  virtual ~scheduled_task();

  virtual void run() = 0;

  /// Returns true if no run is to come. Does not need the lock.
  [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }

  /// Returns true if the wait that has just ended was for a run. A moved wait may end early,
  /// without memory to file it again: start another.
  [[nodiscard]] bool is_its_turn() const noexcept { return !is_early_; }

  /// Starts the wait for the next run. Destroys the wait if the task is over, or if cancel_all()
  /// has ended the task since its last wait: the task is over then. Throws std::bad_alloc, and does
  /// not take over the wait then.
  void start(lazy_wait_op& op);

  /// Returns true if a run is to come: the task is not over, and cancel_all() has not ended it.
  [[nodiscard]] bool is_live() const noexcept;

  /// No further run begins. Returns true if the task was live.
  bool cancel() noexcept;

  /// Moves the next run to `delay` from now. Returns false if no run is to come, or cancel_all()
  /// has ended it.
  [[nodiscard]] bool move(duration delay) noexcept;

  /// When the next run is, or nothing if no run is to come.
  [[nodiscard]] std::optional<time_point> next_turn() const noexcept;

private:
  [[nodiscard]] time_point deadline() const noexcept override { return turn_; }
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;
  [[nodiscard]] wait_outcome expire_early() noexcept override;
  [[nodiscard]] bool was_ahead() const noexcept override { return was_ahead_; }

  [[nodiscard]] bool is_live(const shard_lock& lock) const noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] time_point turn_after_run() const noexcept;
  [[nodiscard]] wait_outcome begin(bool is_early) noexcept;

  time_point turn_;
  const duration period_;
  std::size_t times_;  ///< runs that have not begun; unlimited_times is for ever

  std::uint64_t wait_ = 0;  ///< number of the wait for the next run, filed or announced
  bool announced_ = false;  ///< that wait: from a run's begin to the next start
  std::atomic<bool> is_over_{false};
  bool was_ahead_;          ///< the turn, when it was set
  bool has_begun_ = false;  ///< a run: there is no wait
  bool is_early_ = false;   ///< the wait has ended early: no run, not counted
  bool was_moved_ = false;  ///< since the run began
};

}  // namespace asio_wheel::detail
