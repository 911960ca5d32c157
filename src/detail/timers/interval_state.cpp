// L3 timers: taking the ticks of an interval.
#include <asio_wheel/detail/timers/interval_state.hpp>

#include <asio_wheel/missed_tick.hpp>

#include "../engine/core.hpp"

#include <algorithm>
#include <chrono>

namespace asio_wheel::detail {

time_point awaited_tick::deadline() const noexcept
{
  return of_->shares(*this) ? of_->latest_ : of_->next_;
}

wait_outcome awaited_tick::expire(time_point now) noexcept
{
  of_->take(*this, now);
  return wait_outcome::expired;
}

interval_state::interval_state(wheel_core& c, time_point first, duration period, missed_tick missed)
  : lazy_state(c),
    period_(period),
    missed_(missed)
{
  require_positive("wheel_interval: period", period);
  set_next(first);
}

void interval_state::reset() noexcept
{
  wheel_core& c = core();
  const time_point first = c.clock.deadline_after(period_);
  maybe_tick wake;
  {
    const shard_lock lock = enter();
    shared_until_ = 0;
    const time_point before = next_;
    set_next(first);
    if (first < before) wake = refile_earlier(lock);
  }
  c.wake_at(wake);
}

void interval_state::close() noexcept
{
  {
    const shard_lock lock = enter();
    closed_ = true;
  }
  cancel();
}

void interval_state::start(tick_wait_op& op)
{
  op.set_deadline(op.tick);
  op.tick.of_ = this;
  wheel_core& c = core();
  go_here();
  tick when{};
  {
    shard_lock lock = enter();
    op.tick.began_ = taken_;
    when = present_tick();
    if (!file(lock, op, when)) return;
    if (closed_) lock.cancel(op);
  }
  c.wake_at(when);
}

void interval_state::set_next(time_point t) noexcept
{
  next_ = t;
  was_ahead_ = t > core().clock.now();
}

void interval_state::take(awaited_tick& tick, time_point now) noexcept
{
  if (now >= next_ || !shares(tick)) {
    // The rhythm does not change for a lateness that even an idle loop may have.
    const duration slack =
      std::max<duration>(std::chrono::milliseconds{5}, 2 * core().options.tick);
    latest_ = next_;
    set_next(tick_after(next_, period_, now, missed_, slack));
    shared_until_ = ++taken_;
  }
  tick.time_ = latest_;
}

}  // namespace asio_wheel::detail
