// L2 engine: waits whose deadline moves while they are pending, at the cost of a store.
#pragma once

#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/engine/timer_state.hpp>

#include <atomic>

namespace asio_wheel::detail {

/// Waits with a deadline that any thread may move at any time by a store, for example of the last
/// sign of life.
///
/// A move to later tells nobody. A wait is filed under the deadline known then. When this deadline
/// comes, the shard asks again, and files the wait anew if the deadline has moved: without an
/// allocation, a handler or an executor. So a wait is filed once per timeout, however often the
/// deadline moves. The shard asks once more when the handler is about to begin, so that a late move
/// still counts; by then others may have taken the wait's room, and without memory it ends. After a
/// move to earlier, call refile_earlier().
///
/// A derived class must cancel in its destructor, or the wheel might ask half an object. It must
/// move the parts of its deadline and the waits in one critical section.
class ASIO_WHEEL_EXPORT lazy_state : private timer_waits, public moving_deadline {
public:
  using timer_waits::cancel;
  using timer_waits::context_executor;
  using timer_waits::core;

  /// Starts a wait for the present deadline; completes at once if it has passed. All else as
  /// timer_state::start().
  void start(lazy_wait_op& op);

protected:
  explicit lazy_state(wheel_core& c) noexcept : timer_waits(c) {}
  ~lazy_state() = default;

  // For derived classes with more to do in one critical section.

  using timer_waits::announce;
  using timer_waits::cancel_one;
  using timer_waits::enter;
  using timer_waits::file;
  using timer_waits::go_here;
  using timer_waits::here;
  using timer_waits::waits_;

  /// The tick to file a wait under now.
  [[nodiscard]] tick present_tick() const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Call this after the deadline has moved to earlier. Returns a tick to wake up at, if any.
  [[nodiscard]] maybe_tick refile_earlier(const shard_lock& lock) noexcept
    ASIO_WHEEL_REQUIRES(this);

  /// Cancels what is pending and takes over the waits of `other`; `take()` takes over the parts of
  /// their deadline.
  template <class Take>
  void assign(lazy_state& other, Take take) noexcept;

private:
  void adopt_waits() noexcept;

  /// Returns true if the deadline had not passed when it was set: filing need not read the clock.
  [[nodiscard]] virtual bool was_ahead() const noexcept { return false; }
};

/// A lazy_state whose deadline guards operations, too.
class ASIO_WHEEL_EXPORT guarding_state : public lazy_state {
public:
  /// The guard with this deadline, made on first use. Throws std::bad_alloc.
  [[nodiscard]] guard_ptr guard()
  {
    operation_guard* const g = guard_.load(std::memory_order_acquire);
    return g ? g : make_guard();
  }

protected:
  using lazy_state::lazy_state;
  ~guarding_state() = default;

  /// Cancels what is pending, and guards nothing any more. The destructor must call this.
  void retire() noexcept;

  /// As in lazy_state.
  template <class Take>
  void assign(guarding_state& other, Take take) noexcept;

  /// As in lazy_state, also for the guard's wait. Takes the locks.
  [[nodiscard]] maybe_tick refile_earlier() noexcept;

private:
  [[nodiscard]] guard_ptr make_guard();
  void take_guard(guarding_state& other) noexcept;

  std::atomic<operation_guard*> guard_{nullptr};  ///< counted
};

}  // namespace asio_wheel::detail
