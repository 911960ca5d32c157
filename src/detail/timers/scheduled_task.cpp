// L3 timers: the turns of a task.
#include <asio_wheel/detail/timers/scheduled_task.hpp>

#include <asio_wheel/missed_tick.hpp>

#include "../engine/core.hpp"

#include <utility>

namespace asio_wheel::detail {

scheduled_task::scheduled_task(wheel_core& c, duration delay, std::size_t times) noexcept
  : lazy_state(c),
    turn_(c.clock.deadline_after(delay)),
    period_(delay),
    times_(times),
    was_ahead_(delay > duration::zero())
{}

scheduled_task::~scheduled_task()
{
  cancel();
}

void scheduled_task::start(lazy_wait_op& op)
{
  op.set_deadline(*this);
  wheel_core& c = core();
  if (!has_begun_) go_here();  // an announced wait stays at its shard
  tick when{};
  {
    shard_lock lock = enter();
    const bool announced = std::exchange(announced_, false);
    if (announced && !lock.at().take_announced(wait_)) is_over_ = true;
    if (is_over_) {
      lock.destroy(op);
      return;
    }
    if (has_begun_) {
      turn_ = turn_after_run();
      if (!is_early_ && !was_moved_) was_ahead_ = true;
      has_begun_ = false;
    }
    when = present_tick();
    const std::uint64_t before = lock.at().last_filed();
    const bool needs_wake_up = file(lock, op, when, announced);
    wait_ = lock.at().last_filed();
    if (wait_ == before) wait_ = 0;  // it was rejected
    if (!needs_wake_up) return;
  }
  c.wake_at(when);
}

wait_outcome scheduled_task::expire(time_point) noexcept
{
  return begin(false);
}

wait_outcome scheduled_task::expire_early() noexcept
{
  return begin(true);
}

wait_outcome scheduled_task::begin(bool is_early) noexcept
{
  has_begun_ = true;
  was_moved_ = false;
  is_early_ = is_early;
  if (!is_early && times_ != unlimited_times) --times_;
  if (times_ == 0) {
    is_over_ = true;
    return wait_outcome::expired;
  }
  wait_ = announce();
  announced_ = true;
  return wait_outcome::repeats;
}

bool scheduled_task::is_live() const noexcept
{
  return is_live(enter());
}

bool scheduled_task::is_live(const shard_lock& lock) const noexcept
{
  return !is_over_ && (wait_ == 0 || !lock.at().is_announced_cancelled(wait_));
}

bool scheduled_task::cancel() noexcept
{
  const shard& local = here();
  shard_lock lock = enter();
  if (is_over_) return false;
  const bool was_live = is_live(lock);
  is_over_ = true;
  if (std::exchange(announced_, false))
    lock.at().core.count_ended(lock.at().cancel_announced(wait_));
  else
    lock.cancel(waits_, &lock.at() == &local);
  return was_live;
}

bool scheduled_task::move(duration delay) noexcept
{
  wheel_core& c = core();
  const time_point to = c.clock.deadline_after(delay);
  maybe_tick wake;
  {
    const shard_lock lock = enter();
    if (!is_live(lock)) return false;
    const time_point before = std::exchange(turn_, to);
    was_ahead_ = delay > duration::zero();
    was_moved_ = true;
    // A wait that was moved to later is filed again when its old time comes. When its turn has
    // passed, its tick may still be ahead.
    if (to < before || !was_ahead_) wake = refile_earlier(lock);
  }
  c.wake_at(wake);
  return true;
}

std::optional<time_point> scheduled_task::next_turn() const noexcept
{
  const shard_lock lock = enter();
  if (!is_live(lock)) return {};
  return turn_after_run();
}

/// The turn of a task that is live. After a run, the next turn to come, unless the turn was moved
/// meanwhile.
time_point scheduled_task::turn_after_run() const noexcept
{
  if (!has_begun_ || is_early_ || was_moved_) return turn_;
  return tick_after(turn_, period_, core().clock.now(), missed_tick::skip, duration{});
}

}  // namespace asio_wheel::detail
