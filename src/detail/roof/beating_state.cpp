// L3 roof: the rules of a heartbeat.
#include <asio_wheel/detail/roof/beating_state.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace asio_wheel::detail {
namespace {

heartbeat_options valid_options(const heartbeat_options& options)
{
  if (options.interval <= duration::zero())
    throw std::invalid_argument(
      fmt::format("heartbeat_options::interval is {}; it must be more than 0ns", options.interval));
  if (options.max_missed == 0)
    throw std::invalid_argument("heartbeat_options::max_missed is 0; it must be at least 1");
  return options;
}

/// `times * d`, or duration::max() if that is longer.
duration multiply(duration d, std::size_t times) noexcept
{
  const auto most = static_cast<std::size_t>(duration::max() / d);
  return times <= most ? static_cast<duration::rep>(times) * d : duration::max();
}

}  // namespace

beating_state::beating_state(wheel_core& c, const heartbeat_options& options)
  : guarding_state(c),
    clock_(&c.clock),
    sent_(clock_->start_of_delay()),
    received_(sent_.load()),
    reported_(time_point::min()),
    options_(valid_options(options))
{}

beating_state::beating_state(beating_state&& other) noexcept : guarding_state(other.core())
{
  *this = std::move(other);
}

beating_state& beating_state::operator=(beating_state&& other) noexcept
{
  assign(other, [&] {
    clock_ = other.clock_;
    sent_ = other.sent_.load();
    received_ = other.received_.load();
    reported_ = other.reported_.load();
    options_ = other.options_;
  });
  return *this;
}

void beating_state::sent() noexcept
{
  sent_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void beating_state::received() noexcept
{
  received_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

time_point beating_state::lost_at() const noexcept
{
  return wheel_clock::add(received_.load(std::memory_order_relaxed),
                          multiply(options_.interval, options_.max_missed));
}

time_point beating_state::deadline() const noexcept
{
  const time_point reported = reported_.load(std::memory_order_relaxed);
  const time_point idle_since =
    std::min(sent_.load(std::memory_order_relaxed), received_.load(std::memory_order_relaxed));
  const time_point idle = wheel_clock::add(std::max(idle_since, reported), options_.interval);
  const time_point lost = lost_at();
  // A loss that was reported is reported again as if it were a ping.
  return lost > reported ? std::min(idle, lost) : idle;
}

wait_outcome beating_state::expire(time_point now) noexcept
{
  reported_.store(now, std::memory_order_relaxed);
  return lost_at() <= now ? wait_outcome::timed_out : wait_outcome::expired;
}

}  // namespace asio_wheel::detail
