// L3 roof: what a touch stores, and the deadline that comes of it.
#include <asio_wheel/detail/roof/watched_state.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace asio_wheel::detail {
namespace {

duration valid_timeout(duration timeout)
{
  if (timeout <= duration::zero())
    throw std::invalid_argument(
      fmt::format("wheel_watchdog: the timeout is {}; it must be more than 0ns", timeout));
  return timeout;
}

}  // namespace

watched_state::watched_state(wheel_core& c, duration timeout)
  : lazy_state(c),
    clock_(&c.clock()),
    touched_(clock_->start_of_delay()),
    timeout_(valid_timeout(timeout))
{}

watched_state::watched_state(watched_state&& other) noexcept : lazy_state(other.core())
{
  *this = std::move(other);
}

watched_state& watched_state::operator=(watched_state&& other) noexcept
{
  assign(other, [&] {
    clock_ = other.clock_;
    touched_ = other.touched_.load();
    timeout_ = other.timeout_.load();
  });
  return *this;
}

void watched_state::touch() noexcept
{
  touched_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void watched_state::set_timeout(duration timeout)
{
  timeout_.store(valid_timeout(timeout), std::memory_order_relaxed);
  hasten();
}

time_point watched_state::deadline() const noexcept
{
  return wheel_clock::add(touched_.load(std::memory_order_relaxed), this->timeout());
}

wait_outcome watched_state::expire(time_point) noexcept
{
  return wait_outcome::expired;
}

}  // namespace asio_wheel::detail
