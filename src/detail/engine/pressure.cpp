// L2 engine: finds the timeouts that rising pressure has made due.
#include "pressure.hpp"

#include "../base/memory.hpp"

#include <algorithm>

namespace asio_wheel::detail {

duration adaptive::timeout_under(double p) const noexcept
{
  const duration longest = longest_.load(std::memory_order_acquire);
  const duration shortest = shortest_.load(std::memory_order_relaxed);
  if (p == 1) return shortest;  // the product might not fit
  const double part = p * static_cast<double>((longest - shortest).count());
  return std::max(longest - duration{static_cast<duration::rep>(part)}, shortest);
}

time_point pressure::set(double p) noexcept
{
  const time_point now = clock_.now();
  const locked lock(mutex_);
  const double before = value_.exchange(p, std::memory_order_relaxed);
  if (p <= before || all_.empty()) return time_point::max();
  last_rise_ = now;
  // The latest pause may be of a virtual time that is over.
  const time_point when = std::clamp(pause_ends_, now, now + pause());
  next_sweep_ = std::min(when, next_sweep_.load());
  return when;
}

bool pressure::sweep() noexcept
{
  if (clock_.now() < next_sweep()) return false;
  const locked lock(mutex_);
  const time_point now = clock_.now();
  std::size_t left = left_;
  if (left == 0) {
    left_ = left = all_.size();
    next_sweep_ = time_point::max();
  }
  // A piece takes less than a millisecond. Filing a timeout takes as long as looking at 64 others.
  constexpr std::size_t piece = 4096;
  constexpr std::size_t ahead = 16;  // prefetches so far ahead
  for (std::size_t taken = 0; left != 0 && taken < piece; ++taken) {
    adaptive& a = *all_[--left];
    if (left >= ahead) prefetch(&all_[left - ahead]->shortest_);
    if (!is_due_soon(a, now)) continue;
    a.follow_pressure();
    taken += 64;
  }
  if (left == 0) {
    pause_ends_ = now + pause();
    next_sweep_ = std::max(next_sweep_.load(), pause_ends_);
  }
  left_ = left;
  return left != 0;
}

/// Returns true if `a` is due soon. If not, sees to it that a sweep comes before it is due.
bool pressure::is_due_soon(const adaptive& a, time_point now) noexcept
{
  const duration timeout = a.timeout_under(value());
  const time_point due = sum(a.touched_.load(std::memory_order_relaxed), timeout);
  const duration margin = std::max(timeout / 64, pause());
  if (due - now <= 2 * margin) return true;
  // A pending wait may be filed for later than its deadline. But not if it has no deadline. Nor if
  // the longest timeout has passed since the rise: by then everything filed under less pressure has
  // come up.
  if (due - margin < next_sweep_.load(std::memory_order_relaxed) && due != time_point::max() &&
      now < sum(last_rise_, a.longest_.load(std::memory_order_relaxed)))
    next_sweep_.store(due - margin, std::memory_order_relaxed);
  return false;
}

/// After a sweep.
duration pressure::pause() const noexcept
{
  if (clock_.is_stopped()) return duration::zero();  // a pause would not end
  return static_cast<duration::rep>(all_.size()) * duration{40};
}

void pressure::add(adaptive& a)
{
  const locked lock(mutex_);
  all_.push_back(&a);
  a.place_ = all_.size() - 1;
}

void pressure::remove(adaptive& a) noexcept
{
  const locked lock(mutex_);
  if (a.place_ == adaptive::none) return;
  // The last timeout fills the gap. A sweep begins at the end, so it has seen this timeout, or
  // will.
  replace(a, *all_.back());
  all_.pop_back();
  left_ = std::min(left_.load(), all_.size());
}

void pressure::replace(adaptive& from, adaptive& to) noexcept
{
  mutex_.assert_held();  // by lock_sweep()
  all_[from.place_] = &to;
  to.place_ = from.place_;
  from.place_ = adaptive::none;
}

}  // namespace asio_wheel::detail
