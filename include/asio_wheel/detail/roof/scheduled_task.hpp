// L3 roof: when a task of a keyed_scheduler runs.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/detail/service/lazy_state.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <limits>

namespace asio_wheel::detail {

inline constexpr std::size_t unlimited_times = std::numeric_limits<std::size_t>::max();

/// What can be scheduled: a function without arguments, called any number of times.
template <class F>
concept task_function = std::move_constructible<F> && std::invocable<F&>;

/// How often a task runs, and when again.
struct task_turns {
  duration period;    ///< from one run to the next
  std::size_t times;  ///< runs still to come
};

/// A task of a keyed_scheduler without its key: when it runs, and the wait for that. A derived
/// class holds its function.
///
/// The wait's deadline is the task's **turn**: moving the turn moves the wait. The scheduler's lock
/// guards everything except `is_live()`.
class ASIO_WHEEL_EXPORT scheduled_task : public lazy_state {
public:
  scheduled_task(wheel_core& c, duration delay) noexcept;
  scheduled_task(const scheduled_task&) = delete;
  scheduled_task& operator=(const scheduled_task&) = delete;
  virtual ~scheduled_task();

  virtual void run() = 0;

  /// The runs to come if it runs more than once; else null.
  [[nodiscard]] virtual task_turns* turns() noexcept { return nullptr; }

  /// Whether a run is still to come. Does not require the lock.
  [[nodiscard]] bool is_live() const noexcept { return live_; }

  /// No further run begins. Call cancel() afterwards, without the scheduler's lock, to end the
  /// wait.
  void kill() noexcept { live_ = false; }

  /// Begins a run after the wait, unless the turn was just moved into the future.
  [[nodiscard]] bool begin() noexcept;

  /// Each run calls this once, as it begins. Whether the run is the last.
  [[nodiscard]] bool count_run() noexcept;

  /// Ends a run: sets the turn to the first that is still to come, unless it was moved meanwhile.
  void end() noexcept;

  /// Moves the next run to `delay` from now, which is `to`. Whether there is one:
  /// wheel.cancel_all() may have ended the wait.
  [[nodiscard]] bool move(duration delay, time_point to) noexcept;

  /// When the next run is.
  [[nodiscard]] time_point next_turn() noexcept;

private:
  [[nodiscard]] time_point deadline() const noexcept override;
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;
  [[nodiscard]] bool was_ahead() const noexcept override;

  [[nodiscard]] time_point turn() const noexcept { return turn_.load(std::memory_order_relaxed); }

  std::atomic<time_point> turn_;
  std::atomic<bool> live_{true};
  std::atomic<bool> ahead_;  ///< the turn, when it was set
  bool running_ = false;
  bool moved_ = false;  ///< while it was running
};

}  // namespace asio_wheel::detail
