// L2 service: the deadline of one timer and the waits that are pending on it.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/service/shard_set.hpp>
#include <asio_wheel/service/wait_op.hpp>
#include <asio_wheel/service/wheel_clock.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace asio_wheel {

/// What a `basic_wheel_timer` is, but for its executor.
///
/// All waits of a timer have the same deadline, so they are in one shard and one slot and expire
/// together, but for those that are started when it has passed. The shard is the one of the thread
/// that started the first of them, and guards everything here; while there are none, another thread
/// may take the timer over to its own.
///
/// Thread-safe, but for construction, destruction and moves of the object itself.
class ASIO_WHEEL_EXPORT waits_of_timer {
public:
  explicit waits_of_timer(shard_set& shards) noexcept;
  waits_of_timer(waits_of_timer&& other) noexcept;
  waits_of_timer& operator=(waits_of_timer&& other) noexcept;
  ~waits_of_timer();

  [[nodiscard]] shard_set& shards() const noexcept
  {
    return shard_.load(std::memory_order_relaxed)->set();
  }
  [[nodiscard]] time_point expiry() const noexcept;

  // These cancel what is pending, and return how many that were.
  std::size_t expires_at(time_point deadline) noexcept;
  std::size_t expires_after(duration delay) noexcept;
  std::size_t cancel() noexcept;

  /// Cancels the oldest pending wait. Returns how many that were, 0 or 1.
  std::size_t cancel_one() noexcept;

  /// Starts a wait; the shard owns it from here on.
  /// Throws what allocating or posting throws, with nothing changed and the wait not taken over.
  [[gnu::flatten]] void start(timer_wait_op& op);

  /// Takes a wait out of the list it is in, if any. An expired one takes all along that are due.
  /// Requires the lock of its shard.
  static void forget(timer_wait_op& op, bool expired) noexcept;

  /// Takes note that the timer has let go of a wait.
  static void cut(timer_wait_op& op) noexcept;

  /// Asks for what forget() needs: the timer, or the next wait in its list.
  static void prefetch_owner(const timer_wait_op& op) noexcept;

protected:
  class section;

  /// What assigning `other` does ahead of take_over(). Returns the count that is left behind.
  [[nodiscard]] boost::intrusive_ptr<shard_set> leave_for(const waits_of_timer& other) noexcept;

  /// `s` is a section on `other`.
  void take_over(waits_of_timer& other, const section& s) noexcept;

  /// Starts a wait under the tick that `when()` returns in the critical section; `guess` is what
  /// that may well be.
  template <class When>
  void start(timer_wait_op& op, tick guess, When when);

  [[nodiscard]] static waits_of_timer& owner_of(const timer_wait_op& op) noexcept;

  /// The oldest wait, and the one that was started after another. Require the lock.
  [[nodiscard]] timer_wait_op* first() const noexcept { return head_; }
  [[nodiscard]] static timer_wait_op* next(const timer_wait_op& op) noexcept;

private:
  [[gnu::flatten]] std::size_t set_expiry(time_point deadline, tick when) noexcept;
  std::size_t cancel_all(section& s) noexcept;
  void move_to(shard& local) noexcept;
  [[nodiscard]] tick tick_of_expiry() noexcept;

  [[nodiscard]] std::uintptr_t end_mark() const noexcept
  {
    return reinterpret_cast<std::uintptr_t>(this) | 1;
  }
  void prefetch_self() const noexcept;
  void prefetch_waits() const noexcept;
  void append(timer_wait_op& op) noexcept;
  void remove(timer_wait_op& op) noexcept;

  std::atomic<shard*> shard_;  ///< one of a set that is counted
  std::atomic<timer_wait_op*> head_{nullptr};
  timer_wait_op* tail_ = nullptr;
  std::atomic<const void*> cell_{nullptr};  ///< of the latest wait, unless it has cascaded since
  std::atomic<tick> when_{};                ///< what the expiry is filed under
  time_point expiry_{};
};

/// A critical section on the timer's shard, whichever that is.
class waits_of_timer::section : public shard_section {
public:
  explicit section(const waits_of_timer& timer) noexcept : section(lock(timer), std::adopt_lock) {}

  [[nodiscard]] shard& home() const noexcept { return home_; }

private:
  section(shard& s, std::adopt_lock_t) noexcept : shard_section(s, std::adopt_lock), home_(s) {}

  static shard& lock(const waits_of_timer& timer) noexcept
  {
    for (;;) {
      shard* const s = timer.shard_.load(std::memory_order_acquire);
      s->lock();
      // Acquires again: the timer may have been away, and back, with its waits changed there.
      if (s == timer.shard_.load(std::memory_order_acquire)) return *s;
      s->unlock();
    }
  }

  shard& home_;
};

template <class When>
void waits_of_timer::start(timer_wait_op& op, tick guess, When when)
{
  // The timer may be gone as soon as the wait is filed; the context may not.
  shard_set& set = shards();
  set.prepare(guess);
  shard& local = set.local();
  if (shard_.load(std::memory_order_relaxed) != &local) move_to(local);
  tick filed;
  {
    section s(*this);
    filed = when();
    if (!set.file(s.home(), s, op, filed)) return;
    append(op);
  }
  set.confirm(filed);
}

}  // namespace asio_wheel
