// L2 service: telling those that follow the pressure.
#include <asio_wheel/detail/service/pressure.hpp>

#include <algorithm>
#include <utility>

namespace asio_wheel::detail {

bool pressure::set(double p) noexcept
{
  const std::lock_guard lock(mutex_);
  const double before = value_.exchange(p, std::memory_order_relaxed);
  if (p <= before || count_ == 0) return false;
  untold_ = count_;
  return !std::exchange(telling_, true);
}

bool pressure::tell_some(tick& when) noexcept
{
  when = no_tick;
  const std::lock_guard lock(mutex_);
  untold_ = std::min(untold_, count_);
  for (std::size_t n = 0; n != piece && untold_ != 0; ++n, --untold_) {
    under_pressure& next = *followers_.pop_front();
    followers_.push_back(next);
    when = std::min(when, next.follow());
  }
  return telling_ = untold_ != 0;
}

void pressure::add(under_pressure& u) noexcept
{
  const std::lock_guard lock(mutex_);
  followers_.push_back(u);
  ++count_;
}

void pressure::remove(under_pressure& u) noexcept
{
  const std::lock_guard lock(mutex_);
  intrusive_list<under_pressure>::erase(u);
  --count_;
}

}  // namespace asio_wheel::detail
