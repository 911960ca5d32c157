// L2 service: the expiry of one timer and the waits that are pending on it.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace asio_wheel::detail {

/// What a `basic_wheel_timer` is, but for its executor.
///
/// All waits of a timer have the same expiry and the same home, which guards everything here. It is
/// the home of the thread that started the first of them; while there are none, another thread may
/// take the timer over to its own.
///
/// Thread-safe, but for construction, destruction and moves of the object itself.
class ASIO_WHEEL_EXPORT timer_state {
public:
  explicit timer_state(wheel_core& c) noexcept;
  timer_state(timer_state&& other) noexcept;
  timer_state& operator=(timer_state&& other) noexcept;
  ~timer_state();

  /// The core of the wheel; the timer counts as one of its owners.
  [[nodiscard]] wheel_core& core() const noexcept
  {
    return home_.load(std::memory_order_relaxed)->core();
  }
  [[nodiscard]] time_point expiry() const noexcept;

  // These cancel what is pending, and return how many that were.
  std::size_t expires_at(time_point deadline) noexcept;
  std::size_t expires_after(duration delay) noexcept;
  std::size_t cancel() noexcept;

  /// Cancels the oldest pending wait. Returns how many that were, 0 or 1.
  std::size_t cancel_one() noexcept;

  /// Starts a wait; the core owns it from here on.
  /// Throws what allocating or posting throws, with nothing changed and the wait not taken over.
  [[gnu::flatten]] void start(timer_wait_op& op);

protected:
  class section;

  /// Cancels what is pending, and becomes `other`, all but its waits and expiry, of which `take()`
  /// takes what it wants in the same critical section as those are taken.
  template <class Take>
  void assign(timer_state& other, Take take) noexcept;

  /// Starts a wait under the tick that `when()` returns in the critical section; `guess` is what
  /// that may well be.
  template <class When>
  void start(timer_wait_op& op, tick guess, When when);

  /// The waits, for a section.
  [[nodiscard]] timer_wait_list& waits() noexcept { return waits_; }

private:
  [[gnu::flatten]] std::size_t set_expiry(time_point deadline, tick when) noexcept;
  std::size_t cancel_waits(section& s) noexcept;
  void move_to(home& local) noexcept;
  [[nodiscard]] tick tick_of_expiry() noexcept;
  void take_over(timer_state& other, const section& s) noexcept;

  void prefetch_self() const noexcept;
  void prefetch_latest() const noexcept;

  std::atomic<home*> home_;  ///< of a core that is counted
  timer_wait_list waits_;
  std::atomic<const timer_wait_op*> latest_{nullptr};  ///< of the waits, which may be gone
  std::atomic<const void*> cell_{nullptr};             ///< its cell, unless it has cascaded since
  std::atomic<tick> when_{};                           ///< what the expiry is filed under
  time_point expiry_{};
};

/// A critical section on the timer's home, whichever that is.
class timer_state::section : public detail::section {
public:
  explicit section(const timer_state& timer) noexcept
    : detail::section(lock(timer), std::adopt_lock)
  {}

private:
  static home& lock(const timer_state& timer) noexcept
  {
    for (;;) {
      home* const h = timer.home_.load(std::memory_order_acquire);
      h->lock();
      // Acquires again: the timer may have been away, and back, with its waits changed there.
      if (h == timer.home_.load(std::memory_order_acquire)) return *h;
      h->unlock();
    }
  }
};

template <class Take>
void timer_state::assign(timer_state& other, Take take) noexcept
{
  if (this == &other) return;
  cancel();
  // Still counted while other threads may be looking at it.
  const intrusive_ptr<wheel_core> left(&core(), false);
  intrusive_ptr_add_ref(&other.core());
  const section s(other);
  take_over(other, s);
  take();
}

template <class When>
void timer_state::start(timer_wait_op& op, tick guess, When when)
{
  // The timer may be gone as soon as the wait is filed; the context may not.
  wheel_core& c = core();
  c.prepare(guess);
  home& local = c.local();
  if (home_.load(std::memory_order_relaxed) != &local) move_to(local);
  tick filed;
  {
    section s(*this);
    filed = when();
    if (!c.file(s, op, filed)) return;
    waits_.push_back(op);
    latest_.store(&op, std::memory_order_relaxed);
    cell_.store(op.cell(), std::memory_order_relaxed);
  }
  c.confirm(filed);
}

}  // namespace asio_wheel::detail
