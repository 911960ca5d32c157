// L3 roof: what a touch stores, and the deadline that comes of it.
#include <asio_wheel/wheel_watchdog.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <stdexcept>

namespace asio_wheel {
namespace {

duration valid_timeout(duration timeout)
{
  if (timeout <= duration::zero())
    throw std::invalid_argument(
      fmt::format("wheel_watchdog: the timeout is {}; it must be more than 0ns", timeout));
  return timeout;
}

}  // namespace

watched_waits::watched_waits(shard_set& shards, duration timeout)
  : lazy_waits(shards),
    clock_(&shards.clock()),
    touched_(clock_->start_of_delay()),
    timeout_(valid_timeout(timeout))
{}

watched_waits::watched_waits(watched_waits&& other) noexcept : lazy_waits(other.shards())
{
  take_over(other);
}

watched_waits& watched_waits::operator=(watched_waits&& other) noexcept
{
  if (this != &other) {
    const auto left = leave_for(other);
    take_over(other);
  }
  return *this;
}

void watched_waits::take_over(watched_waits& other) noexcept
{
  const section s(other);
  clock_ = other.clock_;
  touched_ = other.touched_.load();
  timeout_ = other.timeout_.load();
  lazy_waits::take_over(other, s);
}

void watched_waits::touch() noexcept
{
  touched_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void watched_waits::set_timeout(duration timeout)
{
  timeout_.store(valid_timeout(timeout), std::memory_order_relaxed);
  hasten();
}

time_point watched_waits::deadline() const noexcept
{
  return wheel_clock::add(touched_.load(std::memory_order_relaxed), this->timeout());
}

wait_outcome watched_waits::expire(time_point) noexcept
{
  return wait_outcome::expired;
}

}  // namespace asio_wheel
