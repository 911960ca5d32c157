// L3 roof: a watchdog without its executor.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/service/lazy_state.hpp>
#include <asio_wheel/detail/service/pressure.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>
#include <asio_wheel/idle_window.hpp>

#include <atomic>

namespace asio_wheel::detail {

/// The waits of a `basic_wheel_watchdog`, and the times from which their deadline follows.
class ASIO_WHEEL_EXPORT watched_state final : public guarding_state {
public:
  watched_state(wheel_core& c, duration timeout);
  watched_state(wheel_core& c, const idle_window& window);
  watched_state(watched_state&& other) noexcept;
  watched_state& operator=(watched_state&& other) noexcept;
  ~watched_state();

  void touch() noexcept;

  [[nodiscard]] duration timeout() const noexcept
  {
    const duration longest = timeout_.load(std::memory_order_relaxed);
    return window_ ? shortened(longest) : longest;
  }
  void set_timeout(duration timeout);

private:
  [[gnu::noinline]] void touch_by_window() noexcept;
  void end_window() noexcept;
  [[nodiscard]] duration shortened(duration longest) const noexcept;
  [[nodiscard]] const std::atomic<time_point>& touched() const noexcept
  {
    return window_ ? window_->touched : touched_;
  }

  [[nodiscard]] time_point deadline() const noexcept override;
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;
  void follow_pressure() noexcept override;

  // What a touch needs, in one cache line.
  alignas(16) follower* window_ = nullptr;  ///< null if the timeout is always the same
  std::atomic<time_point> touched_;         ///< only then

  const wheel_clock* clock_ = nullptr;
  std::atomic<duration> timeout_;
};

}  // namespace asio_wheel::detail
