// L3 timers: what a touch stores, and the deadline that follows from it.
#include <asio_wheel/detail/timers/watchdog_state.hpp>

#include "../engine/fail_invalid.hpp"
#include "../engine/lazy_state.hpp"

#include <mutex>
#include <utility>

namespace asio_wheel::detail {
namespace {

duration valid_timeout(duration timeout)
{
  if (timeout <= duration::zero())
    fail_invalid("wheel_watchdog: the timeout is %lldns; it must be more than 0ns", in_ns(timeout));
  return timeout;
}

const idle_window& valid_window(const idle_window& window)
{
  if (window.min <= duration::zero())
    fail_invalid("wheel_watchdog: the idle_window's min is %lldns; it must be more than 0ns",
                 in_ns(window.min));
  if (window.max < window.min)
    fail_invalid(
      "wheel_watchdog: the idle_window's max is %lldns; it must be at least its min, %lldns",
      in_ns(window.max), in_ns(window.min));
  return window;
}

}  // namespace

watchdog_state::watchdog_state(wheel_core& c, duration timeout)
  : guarding_state(c),
    adaptive(c.clock.start_of_delay(), valid_timeout(timeout), timeout),
    clock_(&c.clock)
{}

watchdog_state::watchdog_state(wheel_core& c, const idle_window& w)
  : guarding_state(c),
    adaptive(c.clock.start_of_delay(), valid_window(w).max, w.min),
    clock_(&c.clock)
{
  c.pressure_on().add(*this);
}

duration watchdog_state::timeout() const noexcept
{
  const duration longest = longest_.load();
  const bool is_fixed = shortest_.load(std::memory_order_relaxed) == longest;
  return is_fixed ? longest : timeout_under(core().pressure_on().value());
}

watchdog_state::~watchdog_state()
{
  leave();
}

void watchdog_state::leave() noexcept
{
  // First, because a sweep uses the guard.
  if (is_swept()) core().pressure_on().remove(*this);
  retire();
}

watchdog_state::watchdog_state(watchdog_state&& other) noexcept
  : guarding_state(other.core()),
    adaptive(other.touched_, other.longest_, other.longest_),
    clock_(other.clock_)
{
  *this = std::move(other);
}

watchdog_state& watchdog_state::operator=(watchdog_state&& other) noexcept
{
  if (this == &other) return *this;
  leave();
  std::unique_lock<spin_lock> sweep;
  if (other.is_swept()) sweep = other.core().pressure_on().lock_sweep();
  assign(other, [&] {
    clock_ = other.clock_;
    touched_ = other.touched_.load();
    longest_ = other.longest_.load();
    shortest_ = other.shortest_.load();
    if (other.is_swept()) core().pressure_on().replace(other, *this);
  });
  keep_later(touched_, other.touched_);
  // Not before: until the guard has moved, its deadline is `other`'s.
  other.shortest_ = other.longest_.load();
  return *this;
}

void watchdog_state::touch() noexcept
{
  touched_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void watchdog_state::set_timeout(duration timeout)
{
  valid_timeout(timeout);
  wheel_core& c = core();
  {
    const shard_lock lock = enter();  // two callers must not leave a mixture
    // In this order: a reader between the two stores finds a timeout between the old and the new.
    shortest_.store(timeout, std::memory_order_relaxed);
    longest_.store(timeout);
  }
  c.wake_at(refile_earlier());
}

void watchdog_state::note_activity(peer_activity what, time_point now) noexcept
{
  if (what == peer_activity::received) touched_.store(now, std::memory_order_relaxed);
}

time_point watchdog_state::deadline() const noexcept
{
  return sum(touched_.load(std::memory_order_relaxed), this->timeout());
}

void watchdog_state::follow_pressure() noexcept
{
  // The pass that calls this advances the wheels afterwards, so no wake-up is needed.
  static_cast<void>(refile_earlier());
}

}  // namespace asio_wheel::detail
