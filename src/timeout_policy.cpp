// L3 timers: a policy's figures, and what one operation adds to them.
#include <asio_wheel/timeout_policy.hpp>

#include "detail/engine/core.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace asio_wheel {

timeout_policy_stats timeout_policy::stats() const noexcept
{
  timeout_policy_stats s;
  s.started = started_;
  s.expired = expired_;
  s.abandoned = abandoned_;
  std::copy(met_.begin(), met_.end(), s.share_used.buckets.begin());
  s.share_used.sum = static_cast<double>(met_millionths_.load()) / 1e6;
  s.met = s.share_used.count();
  return s;
}

// Of wheel_stats.hpp, but only policies fill such a histogram, and few programs have any.

std::uint64_t share_histogram::count() const noexcept
{
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

double share_histogram::percentile(double p) const noexcept
{
  const double wanted = std::ceil(static_cast<double>(count()) * std::clamp(p, 0.0, 100.0) / 100);
  double seen = 0;
  for (std::size_t i = 0; i < size; ++i) {
    seen += static_cast<double>(buckets[i]);
    if (seen >= wanted && seen > 0) return bounds[i];
  }
  return 0;
}

}  // namespace asio_wheel

namespace asio_wheel::detail {

void policy_state::count_met(duration taken, duration allowed) noexcept
{
  // An operation that ends between its deadline and the deadline's tick has used all.
  const double share =
    allowed <= duration::zero()
      ? 1.0
      : std::clamp(static_cast<double>(taken.count()) / static_cast<double>(allowed.count()), 0.0,
                   1.0);
  const auto bucket =
    std::lower_bound(share_histogram::bounds.begin(), share_histogram::bounds.end(), share);
  met_[static_cast<std::size_t>(bucket - share_histogram::bounds.begin())].fetch_add(
    1, std::memory_order_relaxed);
  met_millionths_.fetch_add(static_cast<std::uint64_t>(share * 1e6), std::memory_order_relaxed);
}

policy_terms policy_state::start(const wheel_core& c) noexcept
{
  return {this, c.clock.start_of_delay(), limit_.load(std::memory_order_relaxed), 0};
}

void policy_use::begin(const policy_terms& terms, policy_report r) noexcept
{
  policy_ = terms.policy;
  used_ = -terms.start.time_since_epoch();
  allowed_ = terms.allowed;
  report_ = r;
  policy_->started_.fetch_add(1, std::memory_order_relaxed);
}

void policy_use::note_end(const wheel_core& c) noexcept
{
  used_ += c.clock.start_of_delay().time_since_epoch();
}

void policy_use::count_met() noexcept
{
  policy_->count_met(used_, allowed_);
}

void policy_use::count(wait_outcome how, bool is_abandoned, error_code& ec) noexcept
{
  const bool has_come = how == wait_outcome::timed_out;
  if (!is_abandoned && how != wait_outcome::rejected &&
      (!has_come || report_ == policy_report::other))
    return count_met();
  policy_state& p = *policy_;
  if (!has_come) return;
  p.expired_.fetch_add(1, std::memory_order_relaxed);
  if (is_abandoned) p.abandoned_.fetch_add(1, std::memory_order_relaxed);
  ec = report_ == policy_report::aborted ? error_code(asio::error::operation_aborted) : p.error_;
}

}  // namespace asio_wheel::detail
