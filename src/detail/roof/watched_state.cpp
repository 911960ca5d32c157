// L3 roof: what a touch stores, and the deadline that follows from it.
#include <asio_wheel/detail/roof/watched_state.hpp>

#include <asio_wheel/detail/ground/memory.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <atomic>
#include <mutex>
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

void require_valid(const idle_window& window)
{
  if (window.min <= duration::zero())
    throw std::invalid_argument(fmt::format(
      "wheel_watchdog: the idle_window's min is {}; it must be more than 0ns", window.min));
  if (window.max < window.min)
    throw std::invalid_argument(
      fmt::format("wheel_watchdog: the idle_window's max is {}; it must be at least its min, {}",
                  window.max, window.min));
}

/// Whether a watchdog of this process has ever had a window.
struct alignas(64) window_use {
  std::atomic<bool> any;
};
constinit window_use windows{};

}  // namespace

watched_state::watched_state(wheel_core& c, duration timeout)
  : guarding_state(c),
    touched_(c.clock.start_of_delay()),
    clock_(&c.clock),
    timeout_(valid_timeout(timeout))
{}

watched_state::watched_state(wheel_core& c, const idle_window& w)
  : guarding_state(c),
    touched_(c.clock.start_of_delay()),
    clock_(&c.clock),
    timeout_(w.max)
{
  require_valid(w);
  if (!windows.any.load(std::memory_order_relaxed))
    windows.any.store(true, std::memory_order_relaxed);
  window_ = &c.pressure_on().add(*this, touched_, w.max, w.min);
}

watched_state::~watched_state()
{
  end_window();
}

void watched_state::end_window() noexcept
{
  retire();  // first: while it is filed, the wheel asks for the deadline, which needs the window
  if (window_) core().pressure_on().remove(*std::exchange(window_, nullptr));
}

watched_state::watched_state(watched_state&& other) noexcept : guarding_state(other.core())
{
  *this = std::move(other);
}

watched_state& watched_state::operator=(watched_state&& other) noexcept
{
  if (this == &other) return *this;
  end_window();
  std::unique_lock<spin_lock> hush;
  if (other.window_) hush = other.core().pressure_on().hush();
  assign(other, [&] {
    clock_ = other.clock_;
    touched_ = other.touched_ = other.touched().load();
    timeout_ = other.timeout_.load();
    window_ = std::exchange(other.window_, nullptr);
    if (window_) window_->owner = this;
  });
  return *this;
}

void watched_state::touch() noexcept
{
  // Without windows, nothing of this is read: memory may be slower than the clock, but a store does
  // not wait for it.
  if (windows.any.load(std::memory_order_relaxed)) return touch_by_window();
  touched_.store(wheel_clock::start_of_delay(clock_), std::memory_order_relaxed);
}

void watched_state::touch_by_window() noexcept
{
  prefetch(&window_);
  const time_point now = wheel_clock::start_of_delay(clock_);
  (window_ ? window_->touched : touched_).store(now, std::memory_order_relaxed);
}

void watched_state::set_timeout(duration timeout)
{
  timeout_.store(valid_timeout(timeout), std::memory_order_relaxed);
  if (window_) {
    // Leaves no room for the pressure.
    window_->longest.store(timeout, std::memory_order_relaxed);
    window_->shortest.store(timeout, std::memory_order_relaxed);
  }
  hasten();
}

duration watched_state::shortened(duration longest) const noexcept
{
  return detail::shortened(longest, window_->shortest.load(std::memory_order_relaxed),
                           core().pressure_on().value());
}

time_point watched_state::deadline() const noexcept
{
  return wheel_clock::add(touched().load(std::memory_order_relaxed), this->timeout());
}

wait_outcome watched_state::expire(time_point) noexcept
{
  return wait_outcome::expired;
}

void watched_state::follow_pressure() noexcept
{
  // The pass that says so moves the wheels afterwards, and needs no wake-up.
  static_cast<void>(bring_forward());
}

}  // namespace asio_wheel::detail
