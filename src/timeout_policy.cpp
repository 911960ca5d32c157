// L3 timers: a policy's figures, and what one operation adds to them.
#include <asio_wheel/timeout_policy.hpp>

#include <asio_wheel/wheel_errc.hpp>

#include "detail/engine/core.hpp"

#include <algorithm>

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

policy_use::policy_use(policy_state& policy, wheel_core& core, duration allowed,
                       deadline_report report) noexcept
  : policy_(&policy),
    core_(&core),
    allowed_(allowed),
    start_(core.clock.start_of_delay()),
    is_cancel_(report == deadline_report::aborted)
{
  policy.started_.fetch_add(1, std::memory_order_relaxed);
}

error_code policy_use::replacement(wait_outcome how) noexcept
{
  if (how == wait_outcome::rejected) {
    is_met_ = false;
    return wheel_errc::too_many_pending;
  }
  if (how != wait_outcome::timed_out) return {};
  if (!has_expired_) policy_->expired_.fetch_add(1, std::memory_order_relaxed);
  has_expired_ = true;
  is_met_ = false;
  return is_cancel_ ? error_code(asio::error::operation_aborted) : policy_->error_;
}

void policy_use::count_abandoned() noexcept
{
  if (has_expired_) policy_->abandoned_.fetch_add(1, std::memory_order_relaxed);
  is_met_ = false;
}

void policy_use::end() noexcept
{
  if (is_met_) policy_->count_met(core_->clock.start_of_delay() - start_, allowed_);
  core_ = nullptr;
}

deadline_filing policy_limit::filing(wheel_core& c) noexcept
{
  allowed = policy->limit_.load(std::memory_order_relaxed);
  return {c, allowed};
}

}  // namespace asio_wheel::detail
