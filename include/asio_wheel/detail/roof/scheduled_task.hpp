// L3 roof: when a task of a keyed_scheduler runs.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/wheel_place.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <limits>
#include <utility>

namespace asio_wheel::detail {

inline constexpr std::size_t unlimited_times = std::numeric_limits<std::size_t>::max();

/// What can be scheduled: called without arguments, any number of times.
template <class F>
concept task_function = std::move_constructible<F> && std::invocable<F&>;

/// A task of a keyed_scheduler, but for its key: when it runs, and how often yet. Its function is
/// in a class derived from this one.
class ASIO_WHEEL_EXPORT scheduled_task {
public:
  /// A task that runs after `delay`, `times` in all and one `period` apart.
  scheduled_task(const wheel_place<>& place, duration delay, duration period, std::size_t times);
  scheduled_task(const scheduled_task&) = delete;
  scheduled_task& operator=(const scheduled_task&) = delete;
  virtual ~scheduled_task() = default;

  virtual void run() = 0;

  [[nodiscard]] bool is_live() const noexcept { return live_; }

  /// No further run begins. The wait is cancelled with end_wait(), outside of the scheduler's lock.
  void kill() noexcept { live_ = false; }
  void end_wait() noexcept { timer_.cancel(); }

  /// To be called as a run begins, and only by it. Whether it is the last.
  [[nodiscard]] bool count_run() noexcept
  {
    if (times_ != unlimited_times) --times_;
    return times_ == 0;
  }

  /// Sets the next run to the first turn that is still to come.
  void set_next_turn() noexcept;

  /// Waits for the next run; `turn(error_code)` owns this task.
  template <class Turn>
  void wait(Turn turn)
  {
    timer_.async_wait(std::move(turn));
    // Who killed it just now may not have found this wait.
    if (!is_live()) end_wait();
  }

private:
  const intrusive_ptr<wheel_core> core_;
  const duration period_;
  std::size_t times_;  ///< runs still to come
  time_point turn_;    ///< the next of them
  wheel_timer timer_;
  std::atomic<bool> live_{true};
};

}  // namespace asio_wheel::detail
