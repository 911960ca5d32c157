// L3 roof: setting the deadlines of a stream.
#include <asio_wheel/detail/roof/stream_side.hpp>

#include <algorithm>
#include <utility>

namespace asio_wheel::detail {

stream_side& stream_side::operator=(stream_side&& other) noexcept
{
  if (this == &other) return *this;
  close();
  until_ = other.until_.load();
  expiry_ = other.expiry_;
  end_ = other.end_;
  limit_ = other.limit_;
  guard_ = std::move(other.guard_);
  if (guard_) guard_->move_to(*this);
  other.until_ = other.expiry_ = other.end_ = time_point::max();
  other.limit_ = duration::max();
  return *this;
}

void stream_side::close() noexcept
{
  if (guard_) guard_->close();
}

time_point stream_side::deadline() const noexcept
{
  return until_.load();
}

wait_outcome stream_side::expire(time_point) noexcept
{
  return wait_outcome::expired;
}

operation_guard& stream_side::use_guard(wheel_core& c)
{
  if (!guard_) guard_ = guard_ptr(new operation_guard(c, *this));
  return *guard_;
}

void stream_side::expires_at(wheel_core& c, time_point expiry)
{
  if (use_guard(c).is_busy()) return;
  expiry_ = expiry;
  set(std::min(expiry, end_));
}

void stream_side::set_limits(wheel_core& c, duration each, time_point end)
{
  const bool busy = use_guard(c).is_busy();
  limit_ = each;
  end_ = end;
  if (!busy) set(std::min(expiry_, end));
}

void stream_side::apply_limit()
{
  if (guard_->is_busy()) return;
  const time_point now = guard_->core().clock().start_of_delay();
  set(std::min({expiry_, end_, wheel_clock::add(now, limit_)}));
}

void stream_side::set(time_point until) noexcept
{
  until_.store(until);
  if (guard_->is_filed_after(until)) guard_->hasten();
}

}  // namespace asio_wheel::detail
