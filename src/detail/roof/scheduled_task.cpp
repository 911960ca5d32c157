// L3 roof: the turns of a task.
#include <asio_wheel/detail/roof/scheduled_task.hpp>

#include <asio_wheel/detail/roof/tick_after.hpp>

namespace asio_wheel::detail {

scheduled_task::scheduled_task(wheel_core& c, duration delay) noexcept
  : lazy_state(c),
    turn_(c.clock.deadline_after(delay)),
    ahead_(delay > duration::zero())
{}

scheduled_task::~scheduled_task()
{
  cancel();
}

bool scheduled_task::begin() noexcept
{
  running_ = turn() <= core().clock.now();
  moved_ = false;
  return running_;
}

bool scheduled_task::count_run() noexcept
{
  task_turns* const t = turns();
  if (!t) return true;
  if (t->times != unlimited_times) --t->times;
  return t->times == 0;
}

void scheduled_task::end() noexcept
{
  turn_.store(next_turn(), std::memory_order_relaxed);
  if (!moved_) ahead_.store(true, std::memory_order_relaxed);
  running_ = false;
}

bool scheduled_task::move(duration delay, time_point to) noexcept
{
  if (!running_ && core().cancel_alls() != 0 && is_all_cancelled()) return false;
  const time_point before = turn();
  turn_.store(to, std::memory_order_relaxed);
  ahead_.store(delay > duration::zero(), std::memory_order_relaxed);
  moved_ = true;
  // A wait that is put off finds that out when its time comes. Its tick may be ahead when its turn
  // has passed.
  if (!running_ && (to < before || !was_ahead())) hasten();
  return true;
}

time_point scheduled_task::next_turn() noexcept
{
  task_turns* const t = turns();
  if (!running_ || moved_ || !t) return turn();
  return tick_after(turn(), t->period, core().clock.now(), missed_tick::skip, duration{});
}

time_point scheduled_task::deadline() const noexcept
{
  return turn();
}

bool scheduled_task::was_ahead() const noexcept
{
  return ahead_.load(std::memory_order_relaxed);
}

wait_outcome scheduled_task::expire(time_point) noexcept
{
  return wait_outcome::expired;
}

}  // namespace asio_wheel::detail
