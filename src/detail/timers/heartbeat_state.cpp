// L3 timers: the rules of a heartbeat.
#include <asio_wheel/detail/timers/heartbeat_state.hpp>

#include "../engine/fail_invalid.hpp"
#include "../engine/lazy_state.hpp"

#include <algorithm>
#include <utility>

namespace asio_wheel::detail {
namespace {

heartbeat_options valid_options(const heartbeat_options& options)
{
  if (options.interval <= duration::zero())
    fail_invalid("heartbeat_options::interval is %lldns; it must be more than 0ns",
                 in_ns(options.interval));
  if (options.max_missed == 0)
    fail_invalid("heartbeat_options::max_missed is 0; it must be at least 1");
  return options;
}

/// `times * d`; saturates.
duration multiply(duration d, std::size_t times) noexcept
{
  const auto most = static_cast<std::size_t>(duration::max() / d);
  return times <= most ? static_cast<duration::rep>(times) * d : duration::max();
}

}  // namespace

heartbeat_state::heartbeat_state(wheel_core& c, const heartbeat_options& options)
  : guarding_state(c),
    clock_(&c.clock),
    sent_(clock_->start_of_delay()),
    received_(sent_.load()),
    reported_(time_point::min()),
    options_(valid_options(options))
{}

heartbeat_state::heartbeat_state(heartbeat_state&& other) noexcept : guarding_state(other.core())
{
  *this = std::move(other);
}

heartbeat_state& heartbeat_state::operator=(heartbeat_state&& other) noexcept
{
  assign(other, [&] {
    clock_ = other.clock_;
    sent_ = other.sent_.load();
    received_ = other.received_.load();
    reported_ = other.reported_.load();
    pings_ = other.pings_;
    options_ = other.options_;
  });
  keep_later(sent_, other.sent_);
  keep_later(received_, other.received_);
  return *this;
}

void heartbeat_state::sent() noexcept
{
  sent_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void heartbeat_state::received() noexcept
{
  received_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void heartbeat_state::note_activity(peer_activity what, time_point now) noexcept
{
  (what == peer_activity::sent ? sent_ : received_).store(now, std::memory_order_relaxed);
}

time_point heartbeat_state::deadline() const noexcept
{
  const time_point idle_since =
    std::min(sent_.load(std::memory_order_relaxed), received_.load(std::memory_order_relaxed));
  // A lost peer is reported again after each interval, as a ping would be.
  return sum(std::max(idle_since, reported_.load(std::memory_order_relaxed)), options_.interval);
}

wait_outcome heartbeat_state::expire(time_point now) noexcept
{
  const time_point received = received_.load(std::memory_order_relaxed);
  const time_point reported = reported_.load(std::memory_order_relaxed);
  if (received >= reported) pings_ = 0;
  const bool lost = lost_if_silent_since(std::max(received, reported), pings_) <= now;
  pings_ = lost ? options_.max_missed : pings_ + 1;
  reported_.store(now, std::memory_order_relaxed);
  return lost ? wait_outcome::timed_out : wait_outcome::expired;
}

time_point heartbeat_state::guarded_until() const noexcept
{
  return lost_if_silent_since(received_.load(std::memory_order_relaxed), 0);
}

/// When a peer is lost that has been silent since `t`, after so many `pings`: each further ping
/// takes an interval, and so does the wait for the last answer.
time_point heartbeat_state::lost_if_silent_since(time_point t, std::size_t pings) const noexcept
{
  const duration of_pings = multiply(options_.interval, options_.max_missed - pings);
  return sum(sum(t, of_pings), options_.interval);
}

}  // namespace asio_wheel::detail
