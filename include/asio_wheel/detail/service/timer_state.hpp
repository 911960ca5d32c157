// L2 service: the expiry of one timer and the waits that are pending on it.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/service/timer_waits.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>

#include <atomic>
#include <cstddef>

namespace asio_wheel::detail {

/// What a `basic_wheel_timer` is, but for its executor: waits that have the same expiry.
///
/// Thread-safe, but for construction, destruction and moves of the object itself.
class ASIO_WHEEL_EXPORT timer_state : private timer_waits {
public:
  explicit timer_state(wheel_core& c) noexcept : timer_waits(c) {}
  timer_state(timer_state&& other) noexcept;
  timer_state& operator=(timer_state&& other) noexcept;

  using timer_waits::core;

  [[nodiscard]] time_point expiry() const noexcept;

  // These cancel what is pending, and return how many that were.
  [[gnu::flatten]] std::size_t expires_at(time_point deadline) noexcept;
  [[gnu::flatten]] std::size_t expires_after(duration delay) noexcept;
  [[gnu::flatten]] std::size_t cancel() noexcept;

  /// Cancels the oldest pending wait. Returns how many that were, 0 or 1.
  std::size_t cancel_one() noexcept;

  /// Starts a wait; the core owns it from here on.
  /// Throws std::bad_alloc, with nothing changed and the wait not taken over.
  [[gnu::flatten]] void start(timer_wait_op& op);

private:
  std::size_t set_expiry(time_point deadline, tick when, home& here) noexcept;
  [[nodiscard]] tick tick_of_expiry() const noexcept;

  void prefetch_self() const noexcept;
  void prefetch_latest(const home& here) const noexcept;

  std::atomic<const timer_wait_op*> latest_{nullptr};  ///< of the waits, which may be gone
  std::atomic<const void*> cell_{nullptr};             ///< its cell, unless it has cascaded since
  std::atomic<tick> when_{};  ///< what the expiry is filed under; no_tick if it had passed
  time_point expiry_{};
};

}  // namespace asio_wheel::detail
