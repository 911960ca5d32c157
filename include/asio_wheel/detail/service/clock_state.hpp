// L2 service: the waits of a timer, and its expiry by any clock.
#pragma once

#include <asio_wheel/detail/ground/any_delay.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/detail/service/lazy_state.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// What a timer of any `Clock` is, but for its executor: the counterpart of timer_state.
///
/// Its waits are lazy. They are filed under the wheel's time at which the expiry is due if neither
/// clock jumps. When that has come, the wheel asks again: a wait that is too early by `Clock` is
/// filed once more. A wait is never filed for longer than `longest_look`, so that a jump is
/// noticed. That is Asio's own limit, as its reactors sleep no longer.
///
/// `Clock::now()` and `WaitTraits` are called under the lock of the waits' home. Asio calls them
/// under the lock of its queue.
template <class Clock, class WaitTraits>
class clock_state final : public lazy_state {
public:
  using wait_type = lazy_wait_op;
  using expiry_type = typename Clock::time_point;

  explicit clock_state(wheel_core& c) noexcept : lazy_state(c) {}
  clock_state(clock_state&& other) noexcept : clock_state(other.core())
  {
    *this = std::move(other);
  }
  clock_state& operator=(clock_state&& other) noexcept
  {
    assign(other, [&] { expiry_ = std::exchange(other.expiry_, {}); });
    return *this;
  }
  ~clock_state() { cancel(); }

  [[nodiscard]] expiry_type expiry() const noexcept
  {
    const section s = enter();
    return expiry_;
  }

  // These cancel what is pending, and return how many that were.
  std::size_t expires_at(expiry_type t) noexcept
  {
    return cancel(here(), [&](section&) { expiry_ = t; });
  }
  std::size_t expires_after(typename Clock::duration delay)
  {
    return expires_at(sum(Clock::now(), delay));
  }
  using lazy_state::cancel;

  std::size_t cancel_one() noexcept
  {
    for (;;) {
      section s = enter();
      const std::size_t n = s.cancel_one(waits_);
      if (n != 0 || waits_.empty()) return n;
    }
  }

  /// Blocks the calling thread until the expiry.
  void block() const
  {
    for (;;) {
      const time_point until = when(expiry());
      if (until == time_point::min()) return;
      core().clock.sleep_towards(until);
    }
  }

private:
  static constexpr duration longest_look = std::chrono::minutes{5};

  /// When the wheel is to look at a wait, by the wheel's clock; time_point::min() if the expiry has
  /// come.
  [[nodiscard]] time_point when(expiry_type expiry) const noexcept
  {
    if (expiry == expiry_type::max()) return time_point::max();
    const expiry_type now = Clock::now();
    if (!(now < expiry)) return time_point::min();
    const duration left = saturate(WaitTraits::to_wait_duration(difference(expiry, now)));
    return wheel_clock::add(core().clock.now(), std::clamp(left, duration{1}, longest_look));
  }

  [[nodiscard]] time_point deadline() const noexcept override
  {
    const time_point t = when(expiry_);
    is_early_ = t != time_point::min();
    return t;
  }

  /// Too early, it could not be filed again for want of memory.
  [[nodiscard]] wait_outcome expire(time_point) noexcept override
  {
    return is_early_ ? wait_outcome::rejected : wait_outcome::expired;
  }

  expiry_type expiry_{};
  mutable bool is_early_ = false;  ///< when last asked
};

}  // namespace asio_wheel::detail
