// L2 engine: waits whose deadline moves while they are pending, at the cost of a store.
#pragma once

#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/engine/timer_state.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <atomic>

namespace asio_wheel::detail {

/// Waits whose deadline is a function of what any thread may store at any time, such as the
/// time of the last sign of life.
///
/// Whoever puts the deadline off tells nobody. A wait is filed under the deadline known then; when
/// that comes, the shard asks again, and files the wait anew if the deadline has moved: no
/// allocation, no handler, no way through an executor. So each wait is filed once in the time that
/// it takes to expire untouched, however often it is put off. The shard asks once more when the
/// handler is about to begin, so that what was put off in between does not expire after all.
/// Who brings the deadline forward says so, with refile_and_wake().
///
/// A class derived from this one cancels in its destructor, or the wheel might ask half an object;
/// and it moves what its deadline consists of in the same critical section as the waits.
class ASIO_WHEEL_EXPORT lazy_state : private timer_waits, public moving_deadline {
public:
  using timer_waits::cancel;
  using timer_waits::core;
  using timer_waits::native;

  /// Starts a wait under the present deadline, to be completed at once if that has passed.
  /// All else as timer_waits::start().
  void start(lazy_wait_op& op);

protected:
  explicit lazy_state(wheel_core& c) noexcept : timer_waits(c) {}
  ~lazy_state() = default;

  // For those who have something else to do in the same critical section.

  using timer_waits::announce;
  using timer_waits::enter;
  using timer_waits::file;
  using timer_waits::go_here;
  using timer_waits::here;
  using timer_waits::waits_;

  /// What a wait is filed under now.
  [[nodiscard]] tick present_tick() const noexcept ASIO_WHEEL_REQUIRES(this);

  /// As refile_earlier() below.
  [[nodiscard]] tick refile_earlier(const shard_lock& lock) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Cancels what is pending and takes over the waits of `other`, and with `take()` what their
  /// deadline consists of.
  template <class Take>
  void assign(lazy_state& other, Take take) noexcept;

  /// Whether cancel_all() has ended a wait whose handler has yet to begin.
  [[nodiscard]] bool is_all_cancelled(const shard_lock& lock) noexcept ASIO_WHEEL_REQUIRES(this);

  /// To be called after the deadline was brought forward.
  void refile_and_wake() noexcept;

  /// The same, but returns a tick for the caller to wake up at, or no_tick.
  [[nodiscard]] tick refile_earlier() noexcept;

private:
  void adopt_waits() noexcept;

  /// Whether the deadline had not passed when it was set: no need to read the clock to file it.
  [[nodiscard]] virtual bool was_ahead() const noexcept { return false; }
};

/// The same for a deadline that guards operations, too.
class ASIO_WHEEL_EXPORT guarding_state : public lazy_state {
public:
  /// What guards operations with this deadline, made when it is first asked for. Throws
  /// std::bad_alloc.
  [[nodiscard]] intrusive_ptr<operation_guard> guard()
  {
    operation_guard* const g = guard_.load(std::memory_order_acquire);
    return g ? g : make_guard();
  }

protected:
  using lazy_state::lazy_state;
  ~guarding_state() = default;

  /// Cancels what is pending, and guards nothing any more. To be called by the destructor.
  void retire() noexcept;

  // As those of lazy_state.

  template <class Take>
  void assign(guarding_state& other, Take take) noexcept;
  void refile_and_wake() noexcept;
  [[nodiscard]] tick refile_earlier() noexcept;

private:
  [[nodiscard]] intrusive_ptr<operation_guard> make_guard();
  void take_guard(guarding_state& other) noexcept;

  std::atomic<operation_guard*> guard_{nullptr};  ///< counted
};

}  // namespace asio_wheel::detail
