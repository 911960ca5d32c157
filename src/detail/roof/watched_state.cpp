// L3 roof: what a touch stores, and the deadline that follows from it.
#include <asio_wheel/detail/roof/watched_state.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
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

}  // namespace

class watched_state::window final : public under_pressure {
public:
  window(watched_state& s, duration min) noexcept : min_(min), owner_(&s) {}

  /// Between the two the owner, which has the window then, is told of rising pressure.
  void open() noexcept { owner_->core().pressure_on().add(*this); }
  void close() noexcept { owner_->core().pressure_on().remove(*this); }

  tick follow() noexcept override { return owner_->bring_forward(); }

  /// Call this only while nobody is told of the pressure.
  void set_owner(watched_state& s) noexcept { owner_ = &s; }

  [[nodiscard]] duration shortened(duration longest) const noexcept
  {
    const double p = owner_->core().pressure_on().value();
    if (p == 1) return min();  // the product might not fit
    const double part = p * static_cast<double>((longest - min()).count());
    return std::max(longest - duration{static_cast<duration::rep>(part)}, min());
  }

  [[nodiscard]] duration min() const noexcept { return min_.load(std::memory_order_relaxed); }
  void set_min(duration min) noexcept { min_.store(min, std::memory_order_relaxed); }

private:
  std::atomic<duration> min_;
  watched_state* owner_;
};

watched_state::watched_state(wheel_core& c, duration timeout)
  : lazy_state(c),
    clock_(&c.clock()),
    touched_(clock_->start_of_delay()),
    timeout_(valid_timeout(timeout))
{}

watched_state::watched_state(wheel_core& c, const idle_window& w)
  : lazy_state(c),
    clock_(&c.clock()),
    touched_(clock_->start_of_delay()),
    timeout_(w.max)
{
  require_valid(w);
  window_ = std::make_unique<window>(*this, w.min);
  window_->open();
}

watched_state::~watched_state()
{
  end_window();
}

void watched_state::end_window() noexcept
{
  retire();  // first: while it is filed, the wheel asks for the deadline, which needs the window
  if (!window_) return;
  window_->close();
  window_.reset();
}

watched_state::watched_state(watched_state&& other) noexcept : lazy_state(other.core())
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
    touched_ = other.touched_.load();
    timeout_ = other.timeout_.load();
    window_ = std::move(other.window_);
    if (window_) window_->set_owner(*this);
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
  if (window_) window_->set_min(timeout);
  hasten();
}

duration watched_state::shortened(duration longest) const noexcept
{
  return window_->shortened(longest);
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
