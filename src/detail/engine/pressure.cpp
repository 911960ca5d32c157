// L2 engine: finds the timeouts that rising pressure has made due.
#include "pressure.hpp"

#include "../base/memory.hpp"

#include <algorithm>
#include <utility>

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
  risen_again_ = left_ != 0;
  // The latest sweep may be of a virtual time that is over.
  const time_point when = left_ == 0 && ended_ <= now ? std::max(now, end_of_pause()) : now;
  next_sweep_.store(std::min(when, next_sweep_.load()), std::memory_order_seq_cst);
  return when;
}

time_point pressure::sweep() noexcept
{
  const time_point next = next_sweep_;
  if (next == time_point::max() || clock_.now() < next) return next;
  const locked lock(mutex_);
  const time_point now = clock_.now();
  if (left_ == 0) {
    left_ = all_.size();
    next_due_soon_ = time_point::max();
  }
  constexpr std::size_t ahead = 16;  // prefetches so far ahead
  for (std::size_t seen = 0, filed = 0; left_ != 0 && seen != most_seen && filed != most_filed;
       ++seen) {
    adaptive& a = *all_[--left_];
    if (left_ >= ahead) prefetch(&all_[left_ - ahead]->shortest_);
    if (!is_due_soon(a, now)) continue;
    a.follow_pressure();
    ++filed;
  }
  if (left_ != 0) return at_once;
  end_sweep(now);
  return next_sweep_;
}

/// Returns true if `a` is due soon. If not, notes when it will be.
bool pressure::is_due_soon(const adaptive& a, time_point now) noexcept
{
  const time_point touched = a.touched_.load(std::memory_order_relaxed);
  const duration longest = a.longest_.load(std::memory_order_relaxed);
  const duration shortest = a.shortest_.load(std::memory_order_relaxed);
  const duration timeout = a.timeout_under(value());
  const duration idle = std::max(now - touched, duration::zero());  // virtual time may go back
  if (idle >= timeout - timeout / 32) return true;
  const duration left = timeout - timeout / 64 - idle;
  // A pending wait may be filed for later than its deadline. But not if it has no deadline, or if
  // the pressure does not change it. Nor if the longest timeout has passed since the rise: by then
  // everything filed under less pressure has come up.
  if (left < next_due_soon_ - now && sum(touched, timeout) != time_point::max() &&
      longest != shortest && now < sum(last_rise_, longest))
    next_due_soon_ = now + left;
  return false;
}

void pressure::end_sweep(time_point now) noexcept
{
  ended_ = now;
  if (std::exchange(risen_again_, false)) next_due_soon_ = std::min(next_due_soon_, end_of_pause());
  next_sweep_.store(next_due_soon_, std::memory_order_seq_cst);
}

time_point pressure::end_of_pause() const noexcept
{
  if (clock_.is_stopped()) return ended_;  // a pause would not end
  return ended_ + pause * static_cast<duration::rep>(all_.size());
}

void pressure::add(adaptive& a)
{
  const locked lock(mutex_);
  all_.push_back(&a);
  a.place_.store(all_.size() - 1, std::memory_order_relaxed);
}

void pressure::remove(adaptive& a) noexcept
{
  const locked lock(mutex_);
  // The last timeout fills the gap. A sweep begins at the end, so it has seen this timeout, or
  // will.
  put(*all_.back(), a.place_);
  a.place_ = adaptive::none;
  all_.pop_back();
  left_ = std::min(left_, all_.size());
}

void pressure::replace(adaptive& from, adaptive& to) noexcept
{
  mutex_.assert_held();  // by lock_sweep()
  put(to, from.place_);
  from.place_ = adaptive::none;
}

void pressure::put(adaptive& a, std::size_t place) noexcept
{
  all_[place] = &a;
  a.place_ = place;
}

}  // namespace asio_wheel::detail
