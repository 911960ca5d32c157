// L2 engine: the waits of a timer, and its expiry by any clock.
#pragma once

#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/lazy_state.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// A clock_state without its clock.
class ASIO_WHEEL_EXPORT waits_of_clock : public lazy_state {
public:
  using lazy_state::cancel;
  using lazy_state::cancel_one;

protected:
  explicit waits_of_clock(wheel_core& c) noexcept : lazy_state(c) {}
  ~waits_of_clock() = default;

  /// What else to do in a critical section.
  class step {
  public:
    template <class Function>
    step(const Function& f) noexcept
      : function_(&f),
        call_([](const void* function) { (*static_cast<const Function*>(function))(); })
    {}
    void operator()() const { call_(function_); }

  private:
    const void* function_;
    void (*call_)(const void*);
  };

  /// Does the step under the lock.
  void lock_for(step s) const noexcept;

  /// Cancels what is pending, and does the step while nothing is pending. Returns how many waits it
  /// cancelled.
  std::size_t cancel_for(step s) noexcept;

  /// Cancels what is pending, takes over the waits of `other`, and does the step.
  void assign(waits_of_clock& other, step s) noexcept;

  /// Blocks the calling thread for a while, at most until `t`.
  void sleep_towards(time_point t) const;
};

/// A timer of any `Clock` without its executor: the counterpart of timer_state.
///
/// Its waits are lazy. They are filed under the wheel's time at which the expiry is due if neither
/// clock jumps. Then the wheel asks again: a wait that is too early by `Clock` is filed once more.
/// A wait is never filed for longer than `longest_filing`, so that a jump is noticed. Asio has this
/// limit, too: its reactors sleep no longer.
///
/// `Clock::now()` and `WaitTraits` are called under the lock of the waits' shard. Asio calls them
/// under the lock of its queue.
template <class Clock, class WaitTraits>
class clock_state final : public waits_of_clock {
public:
  using wait_type = lazy_wait_op;
  using expiry_type = typename Clock::time_point;

  explicit clock_state(wheel_core& c) noexcept : waits_of_clock(c) {}
  clock_state(clock_state&& other) noexcept : clock_state(other.core())
  {
    *this = std::move(other);
  }
  clock_state& operator=(clock_state&& other) noexcept
  {
    const auto take = [&] { expiry_ = std::exchange(other.expiry_, {}); };
    assign(other, take);
    return *this;
  }
  ~clock_state() { cancel(); }

  [[nodiscard]] expiry_type expiry() const noexcept
  {
    expiry_type t{};
    const auto read = [&] { t = expiry_; };
    lock_for(read);
    return t;
  }

  // These cancel what is pending, and return how many waits they cancelled.
  std::size_t expires_at(expiry_type t) noexcept
  {
    const auto set = [&] { expiry_ = t; };
    return cancel_for(set);
  }
  std::size_t expires_after(typename Clock::duration delay)
  {
    return expires_at(sum(Clock::now(), delay));
  }

  /// Blocks the calling thread until the expiry.
  void block() const
  {
    for (;;) {
      const time_point until = when(expiry());
      if (until == time_point::min()) return;
      sleep_towards(until);
    }
  }

private:
  static constexpr duration longest_filing = std::chrono::minutes{5};

  /// When the wheel is to ask again, by the wheel's clock; time_point::min() if the expiry has
  /// come.
  [[nodiscard]] time_point when(expiry_type expiry) const noexcept
  {
    if (expiry == expiry_type::max()) return time_point::max();
    const expiry_type now = Clock::now();
    if (!(now < expiry)) return time_point::min();
    const duration left = saturate(WaitTraits::to_wait_duration(difference(expiry, now)));
    return now_plus(core(), std::clamp(left, duration{1}, longest_filing));
  }

  [[nodiscard]] time_point deadline() const noexcept override { return when(expiry_); }

  expiry_type expiry_{};
};

}  // namespace asio_wheel::detail
