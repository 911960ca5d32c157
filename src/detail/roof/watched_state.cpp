// L3 roof: what a touch stores, and the deadline that follows from it.
#include <asio_wheel/detail/roof/watched_state.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

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

  /// Between the two the owner, which has the window then, follows the pressure.
  void open(duration max) { pressure_on().add(*this, owner_->touched_, max, min()); }
  void close() noexcept { pressure_on().remove(*this); }

  // The pass that tells it moves the wheels afterwards, and needs no wake-up.
  void follow() noexcept override { static_cast<void>(owner_->bring_forward()); }

  /// Call this only while nobody is told of the pressure.
  void set_owner(watched_state& s) noexcept
  {
    owner_ = &s;
    pressure_on().move_base(*this, s.touched_);
  }

  [[nodiscard]] duration shortened(duration longest) const noexcept
  {
    return detail::shortened(longest, min(), pressure_on().value());
  }

  /// Leaves no room for the pressure.
  void fix(duration timeout) noexcept
  {
    min_.store(timeout, std::memory_order_relaxed);
    pressure_on().change(*this, timeout, timeout);
  }

private:
  [[nodiscard]] pressure& pressure_on() const noexcept { return owner_->core().pressure_on(); }
  [[nodiscard]] duration min() const noexcept { return min_.load(std::memory_order_relaxed); }

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
  window_->open(w.max);
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
  if (window_) window_->fix(timeout);
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
