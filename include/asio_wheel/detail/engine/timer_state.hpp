// L2 engine: the pending waits of one object, and the expiry of a timer.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <atomic>
#include <cstddef>

namespace asio_wheel::detail {

class shard_lock;
class wheel_core;

/// The base of timers, watchdogs and tasks: waits that are cancelled together.
///
/// All waits of one object are in one shard. The shard's lock guards everything here. A thread that
/// is about to start the first wait may move the object, without waits, to its own shard.
///
/// Thread-safe, except for construction, destruction and moves of the object itself.
class ASIO_WHEEL_LOCK ASIO_WHEEL_EXPORT timer_waits {
public:
  timer_waits(const timer_waits&) = delete;
  timer_waits& operator=(const timer_waits&) = delete;

  /// The core of the wheel; the object owns a count of it.
  [[nodiscard]] wheel_core& core() const noexcept;

  /// The executor of the wheel's context.
  [[nodiscard]] const asio::any_io_executor& context_executor() const noexcept;

  /// Cancels what is pending. Returns how many waits it cancelled.
  std::size_t cancel() noexcept;

  /// Cancels the oldest pending wait. Returns 1, or 0 if no wait is pending.
  [[gnu::flatten]] std::size_t cancel_one() noexcept;

protected:
  explicit timer_waits(wheel_core& c) noexcept;
  ~timer_waits();

  /// The shard where this thread starts its waits. May make the shard, so hold no lock.
  [[nodiscard]] shard& here() const noexcept;

  /// Locks the waits' shard, whichever it is. Clang cannot follow which.
  [[nodiscard]] shard_lock enter() const noexcept
    ASIO_WHEEL_ACQUIRE(this) ASIO_WHEEL_NO_LOCK_ANALYSIS;

  /// Cancels what is pending, and calls `then(shard_lock&)` under the lock while nothing is
  /// pending.
  template <class Then>
  std::size_t cancel(const shard& local, Then then) noexcept;

  /// Cancels what is pending, and takes over the waits of `other`; `take()` may take more in the
  /// same critical section.
  template <class Take>
  void assign(timer_waits& other, Take take) noexcept;

  /// Files a wait, as wheel_core::file() does, and lists it. Wake the core for it afterwards; the
  /// object may be gone then, but not the core.
  [[nodiscard]] bool file(shard_lock& lock, timer_wait_op& op, tick& when, bool announced = false);

  /// Announces a wait, as shard::announce() does. Requires the lock. The object must stay at its
  /// shard until the wait is filed.
  [[nodiscard]] std::uint64_t announce() noexcept;

  /// Returns true if the waits are at `sh`.
  [[nodiscard]] bool is_at(const shard& sh) const noexcept;

  /// Moves the object to another shard. Requires the lock, and that it has no waits.
  void go_to(shard& sh) noexcept;

  /// Moves the object to the shard of this thread, unless it has waits.
  void go_here() noexcept;

  timer_wait_list waits_;  // for a shard_lock

private:
  template <class Then>
  [[gnu::noinline, gnu::cold]] std::size_t cancel_rest(const shard& local, Then then) noexcept;
  void take_over(timer_waits& other, const shard_lock& lock) noexcept;

  std::atomic<shard*> shard_;  ///< counts its core
};

/// A `basic_wheel_timer` without its executor: waits with one expiry.
///
/// Thread-safe, except for construction, destruction and moves of the object itself.
class ASIO_WHEEL_EXPORT timer_state : private timer_waits {
public:
  using wait_type = timer_wait_op;

  explicit timer_state(wheel_core& c) noexcept : timer_waits(c) {}
  timer_state(timer_state&& other) noexcept;
  timer_state& operator=(timer_state&& other) noexcept;

  using timer_waits::cancel_one;
  using timer_waits::context_executor;
  using timer_waits::core;

  [[nodiscard]] time_point expiry() const noexcept;

  // These cancel what is pending, and return how many waits they cancelled.
  [[gnu::flatten]] std::size_t expires_at(time_point deadline) noexcept;
  [[gnu::flatten]] std::size_t expires_after(duration delay) noexcept;
  [[gnu::flatten]] std::size_t cancel() noexcept;

  /// Starts a wait; the core takes it over. Throws std::bad_alloc, with nothing changed and the
  /// wait not taken over.
  [[gnu::flatten]] void start(timer_wait_op& op);

  /// Blocks the calling thread until the expiry.
  void block() const;

private:
  std::size_t set_expiry(time_point deadline, maybe_tick when, shard& local) noexcept;
  [[nodiscard]] tick tick_of_expiry() const noexcept ASIO_WHEEL_REQUIRES(this);

  void prefetch_self() const noexcept;
  void prefetch_latest(const shard& local) const noexcept;

  std::atomic<const timer_wait_op*> latest_{nullptr};  ///< of the waits; may be gone
  std::atomic<const void*> cell_{nullptr};             ///< its cell, unless it has cascaded since
  std::atomic<maybe_tick> when_{};                     ///< the expiry's tick; none if it had passed
  time_point expiry_{};
};

}  // namespace asio_wheel::detail
