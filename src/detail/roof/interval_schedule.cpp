// L3 roof: taking the ticks of an interval.
#include <asio_wheel/detail/roof/interval_schedule.hpp>

#include <asio_wheel/detail/roof/tick_after.hpp>

#include <algorithm>

namespace asio_wheel::detail {

interval_schedule::interval_schedule(wheel_timer_service& wheel, time_point first, duration period,
                                     missed_tick missed)
  : core_(&core_of(wheel)),
    period_(period),
    missed_(missed),
    timer_(wheel, first),
    next_(first)
{
  require_positive("wheel_interval: period", period);
}

void interval_schedule::cancel() noexcept
{
  const std::lock_guard lock(mutex_);
  cancelled_ = ++epoch_;
  timer_.cancel();
}

void interval_schedule::reset() noexcept
{
  const time_point first = core_->clock.deadline_after(period_);
  const std::lock_guard lock(mutex_);
  taken_until_ = 0;
  set_next(first);
}

void interval_schedule::close() noexcept
{
  const std::lock_guard lock(mutex_);
  closed_ = true;
  // In the past, so that a wait which somebody is about to start ends at once.
  set_next(time_point::min());
}

void interval_schedule::set_next(time_point t) noexcept
{
  next_ = t;
  ++epoch_;
  timer_.expires_at(t);
}

/// Turns out a wait that was filed late: if the timer changed since it began, it may have missed
/// being turned out with the others.
void interval_schedule::turn_out_since(epoch began) noexcept
{
  const std::lock_guard lock(mutex_);
  if (epoch_ != began) set_next(next_);
}

auto interval_schedule::present() const noexcept -> beginning
{
  const std::lock_guard lock(mutex_);
  return present_in_lock();
}

auto interval_schedule::present_in_lock() const noexcept -> beginning
{
  return {epoch_, core_->cancel_alls()};
}

std::optional<time_point> interval_schedule::take(error_code& ec, beginning& began)
{
  const std::lock_guard lock(mutex_);
  if (closed_) ec = asio::error::operation_aborted;
  const bool turned_out = ec == asio::error::operation_aborted && epoch_ != began.at &&
                          core_->cancel_alls() == began.cancel_alls;
  if (closed_ || cancelled_ > began.at || (ec && !turned_out)) {
    if (!ec) ec = asio::error::operation_aborted;
    return time_point{};
  }
  ec = {};
  const time_point now = core_->clock.now();
  if (now >= next_) {
    // The rhythm does not change for a lateness that even an idle loop may have.
    const duration slack =
      std::max<duration>(std::chrono::milliseconds{5}, 2 * core_->options.tick);
    taken_ = next_;
    set_next(tick_after(next_, period_, now, missed_, slack));
    taken_until_ = epoch_;
    return taken_;
  }
  if (began.at < taken_until_) return taken_;
  began = present_in_lock();
  return std::nullopt;
}

}  // namespace asio_wheel::detail
