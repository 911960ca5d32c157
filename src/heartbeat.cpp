// L3 roof: the rules of a heartbeat.
#include <asio_wheel/heartbeat.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace asio_wheel {
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

beating_waits::beating_waits(shard_set& shards, const heartbeat_options& options)
  : lazy_waits(shards),
    clock_(&shards.clock()),
    sent_(clock_->start_of_delay()),
    received_(sent_.load()),
    reported_(time_point::min()),
    options_(valid_options(options))
{}

beating_waits::beating_waits(beating_waits&& other) noexcept : lazy_waits(other.shards())
{
  take_over(other);
}

beating_waits& beating_waits::operator=(beating_waits&& other) noexcept
{
  if (this != &other) {
    const auto left = leave_for(other);
    take_over(other);
  }
  return *this;
}

void beating_waits::take_over(beating_waits& other) noexcept
{
  const section s(other);
  clock_ = other.clock_;
  sent_ = other.sent_.load();
  received_ = other.received_.load();
  reported_ = other.reported_.load();
  options_ = other.options_;
  lazy_waits::take_over(other, s);
}

void beating_waits::sent() noexcept
{
  sent_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void beating_waits::received() noexcept
{
  received_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

time_point beating_waits::lost_at() const noexcept
{
  return wheel_clock::add(received_.load(std::memory_order_relaxed),
                          multiply(options_.interval, options_.max_missed));
}

time_point beating_waits::deadline() const noexcept
{
  const time_point reported = reported_.load(std::memory_order_relaxed);
  const time_point idle_since =
    std::min(sent_.load(std::memory_order_relaxed), received_.load(std::memory_order_relaxed));
  const time_point idle = wheel_clock::add(std::max(idle_since, reported), options_.interval);
  const time_point lost = lost_at();
  // A loss that was reported is reported again as if it were a ping.
  return lost > reported ? std::min(idle, lost) : idle;
}

wait_outcome beating_waits::expire(time_point now) noexcept
{
  reported_.store(now, std::memory_order_relaxed);
  return lost_at() <= now ? wait_outcome::timed_out : wait_outcome::expired;
}

}  // namespace asio_wheel
