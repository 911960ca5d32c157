// L2 engine: the shards of one wheel, and how their waits get to their handlers.
#pragma once

#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/pending_handlers.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include "../base/locks.hpp"
#include "driver.hpp"
#include "driver_client.hpp"
#include "due_shards.hpp"
#include "posting.hpp"
#include "pressure.hpp"
#include "shard.hpp"
#include "shard_lock.hpp"
#include "shard_table.hpp"
#include "wheel_clock.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

namespace asio_wheel::detail {

/// Counts in how many threads there is one.
class thread_inside {
public:
  explicit thread_inside(std::atomic<int>& threads) noexcept : threads_(threads) { ++threads_; }
  thread_inside(const thread_inside&) = delete;
  thread_inside& operator=(const thread_inside&) = delete;
  ~thread_inside() { --threads_; }

private:
  std::atomic<int>& threads_;
};

/// All the shards of a wheel, the limit to their waits, the driver, and the deliveries that call
/// handlers. Counted by the service and by every timer, so that a timer may outlive its context: it
/// then finds the shards closed.
///
/// There are two ways to a handler. Waits that are **due** are taken from the shards one by one, in
/// one order. Waits that have **ended** without that, mostly because they were cancelled, are taken
/// from their shard alone, so that the threads that cancel them keep out of each other's way.
///
/// A deadline of an operation **fires** when it has come or has ended: it cancels the operation. It
/// must not reach an I/O object that a handler has destroyed before. That object's operations are
/// aborted then, but their completions are still queued in the context. So deadlines fire in a
/// function of their own, which is posted when the first of them is next; and from then until it
/// runs, no handler of a wait is called. When it runs, all that was queued before it has completed,
/// and an operation that has ended takes its deadline with it.
class wheel_core final : public intrusive_ref_counter<wheel_core>, private driver_client {
public:
  wheel_core(asio::execution_context& context, const asio::any_io_executor& ex,
             const wheel_options& given);
  ~wheel_core();

  const wheel_options options;
  asio::execution_context& context;
  const asio::any_io_executor executor;
  const native_executor native;
  wheel_clock clock;
  shard_table shards;
  std::atomic<std::size_t> abandoned{0};  ///< operations that go on without their handlers

  // For those who post to the context: between the two it does not go. False if it is going.

  [[nodiscard]] bool enter_posting() noexcept { return posting_.try_lock_shared(); }
  void leave_posting() noexcept { posting_.unlock_shared(); }

  /// Starts a wait; it is the core's from here on.
  /// Throws std::bad_alloc, with nothing changed and the wait not taken over.
  [[gnu::flatten]] void start(wait_op& op, tick when);

  // A start in its parts, for those who have something to do in the same critical section.

  /// Files the wait, refuses it if there are too many, or destroys it if the shards are closed.
  /// Whether it was filed: `when` then becomes a tick to wake up at. If not, the core may be gone
  /// when the lock is released. Throws std::bad_alloc, with nothing changed.
  ///
  /// @param announced  the wait has been counted before (shard::announce), and is not too many.
  [[nodiscard]] bool file(shard_lock& lock, wait_op& op, tick& when, bool announced = false);

  /// To be called after filing: makes sure of a wake-up.
  void wake_at(tick when) noexcept;

  /// Decides how a wait ends that was sent at `taken_up`, on the handler's executor. Returns none
  /// if it was filed again.
  [[nodiscard]] wait_outcome begin(wait_op& op, shard& sh, time_point taken_up) noexcept;

  /// An executor dropped a wait that was sent: it is unreachable then, and the caller's to destroy.
  void drop(wait_op& op, shard& sh) noexcept;

  /// An executor refused a wait that was to be sent: the next pass sends it again. False if the
  /// shard is closed: then it is as if it was dropped.
  [[nodiscard]] bool keep_refused(wait_op& op, shard& sh) noexcept;

  /// Sees to a pass at the next tick, which tries again what executors have refused.
  void retry_later() noexcept;

  /// How many handlers have begun, of waits and of operations that have a deadline.
  [[nodiscard]] std::uint64_t handlers_begun() const noexcept;

  /// Keeps the core for a deadline that is not filed any more. Requires the lock of its shard.
  void keep_for(wait_op& deadline) noexcept;

  /// Tells the driver what is not needed any more at `sh`, if anything.
  [[gnu::noinline]] static void tell_driver(shard& sh) noexcept ASIO_WHEEL_EXCLUDES(sh);

  /// Keeps the count that max_pending is compared with.
  void count_ended(std::size_t n) noexcept;
  void count_started(std::size_t n) noexcept;

  /// Sets the pressure. Those that follow it are told by passes.
  void set_pressure(double p) noexcept;
  [[nodiscard]] pressure& pressure_on() noexcept { return pressure_; }

  std::size_t cancel_all();

  /// Grows as cancel_all() begins, and as it ends.
  [[nodiscard]] std::uint64_t cancel_alls() const noexcept { return cancel_alls_; }
  [[nodiscard]] std::size_t pending() const noexcept;
  [[nodiscard]] wheel_stats stats() const noexcept;

  // Of all the waits, in pieces, and one at a time: see core_survey.cpp.
  [[nodiscard]] pending_handlers pending_by_handler();
  [[nodiscard]] std::optional<time_point> next_expiry();

  // For virtual_time, which takes care that one thread at a time moves a clock that is stopped: see
  // core_clock.cpp.

  /// Stops the clock at its present reading. Whether it was running.
  [[nodiscard]] bool stop_clock() noexcept;

  /// Moves the stopped clock and the wheels to the next time at which a wait is due, and posts its
  /// delivery. Returns false, and goes no further than `limit`, if that comes first.
  [[nodiscard]] bool step_clock(time_point limit) noexcept;

  /// Whether no wait is filed that will ever be due.
  [[nodiscard]] bool is_at_rest() noexcept;

  /// Moves the stopped clock to `t`, by which nothing is due that has not expired.
  void move_clock(time_point t) noexcept { clock.stop_at(t); }

  /// To be called when the clock will not be moved for a while: sees to the timer, which was left
  /// alone between its steps.
  void rest_clock() noexcept { driver_.rearm(); }

  /// The process is a child of fork(), and may use the context from here on.
  void go_on_in_child() noexcept { driver_.go_on_in_child(); }

  /// Lets the clock run. If that takes it back, the wheels go back with it.
  void start_clock() noexcept;

  /// Lets no new wait in, destroys those there are, and leaves the context alone from then on. May
  /// be repeated.
  void close() noexcept;

private:
  friend class shard_lock;

  static constexpr time_point none_found{};

  /// What a delivery is to do next.
  struct next_wait {
    wait_op* op = nullptr;  ///< null: nothing
    shard* at = nullptr;
    wait_request request = wait_request::send();
    bool post = false;       ///< first, another delivery is to be posted
    bool fire = false;       ///< first, post_firing() is to be called
    bool more = false;       ///< afterwards, there may be others
    tick refiled = no_tick;  ///< the earliest of those that were filed again
    shard* idle = nullptr;   ///< afterwards, the driver is to be told of it
    time_point taken_up{};
  };

  [[gnu::noinline]] void file_overdue(wait_op& op, shard& sh) ASIO_WHEEL_REQUIRES(sh);

  [[nodiscard]] tick next_tick() noexcept override;
  void pass() override;
  void follow_pass() override;
  void turn_was_refused() noexcept override { driver_.retry_turn(); }

  [[nodiscard, gnu::flatten]] std::uint64_t advance_shards(tick now) noexcept
    ASIO_WHEEL_REQUIRES(advance_mutex_);
  [[nodiscard]] std::uint64_t catch_up() noexcept ASIO_WHEEL_REQUIRES(advance_mutex_);
  void request_due(std::uint64_t found) noexcept ASIO_WHEEL_EXCLUDES(due_mutex_);
  [[gnu::noinline]] void post_due() noexcept ASIO_WHEEL_EXCLUDES(due_mutex_);
  [[gnu::flatten]] void deliver_due(time_point now, bool behind_pass);
  void take_due(next_wait& next, time_point now) noexcept;
  void cancel_wake_up(shard& sh, tick unneeded) noexcept ASIO_WHEEL_EXCLUDES(sh);
  [[gnu::noinline]] void erase_resting(shard& sh) noexcept ASIO_WHEEL_EXCLUDES(sh);
  [[nodiscard]] bool begin_delivery(bool behind_pass) noexcept;
  void note_found() noexcept ASIO_WHEEL_REQUIRES(due_mutex_);
  [[gnu::noinline]] void post_ended(shard& sh) noexcept ASIO_WHEEL_EXCLUDES(sh);
  void deliver_ended(shard& sh) ASIO_WHEEL_EXCLUDES(sh);
  [[gnu::noinline, gnu::flatten]] void call_ended(shard& sh);
  [[nodiscard, gnu::noinline]] int begin_ended(shard& sh) noexcept;
  void take_ended(next_wait& next, shard& sh) noexcept;

  [[gnu::noinline]] void post_firing() noexcept;
  void fire_deadlines();
  [[nodiscard]] wait_op* take_due_deadline(next_wait& next, time_point now) noexcept;
  [[nodiscard]] wait_op* take_ended_deadline(next_wait& next) noexcept;
  void resume() noexcept;
  [[nodiscard]] bool is_retry_due(tick now) noexcept;
  void retry_refused() noexcept;
  void destroy_later(wait_op& op, wait_list& all) noexcept;

  // What a wake-up touches stands together, as far as locks allow, and what is large behind it: a
  // lone timer finds the caches cold (bench/LOG.md).
  std::atomic<std::size_t> pending_{0};  ///< kept only if there is a limit to it
  std::atomic<tick> passed_{};           ///< the latest that the wheels were advanced to
  std::atomic<std::uint64_t> cancel_alls_{0};
  std::atomic<tick> retry_at_{no_tick};  ///< when to try again what executors have refused
  std::atomic<bool> is_retry_due_{false};
  std::atomic<bool> is_pressure_set_{false};  ///< if not, passes need not look who follows it

  spin_lock advance_mutex_;  ///< keeps clock and wheels in step; taken before the shards' locks

  std::atomic<int> delivering_{0};          ///< threads that deliver what is due
  std::atomic<std::uint64_t> found_in_{0};  ///< bits of the shards that `due_` is to be told of

  /// When a pass was made that has requested a delivery, which is to follow it; none if it has
  /// begun.
  std::atomic<time_point> found_due_{none_found};

  mutable spin_lock due_mutex_;  ///< of the following; taken before the shards' locks
  /// Waits taken since nothing was due, and the most there have been.
  std::uint64_t burst_ ASIO_WHEEL_GUARDED_BY(due_mutex_) = 0;
  std::uint64_t largest_burst_ ASIO_WHEEL_GUARDED_BY(due_mutex_) = 0;
  due_shards due_ ASIO_WHEEL_GUARDED_BY(due_mutex_){shards};
  delivery due_delivery_;
  delivery firing_;

  pressure pressure_{clock};
  gate posting_;  ///< of enter_posting()

  std::mutex survey_mutex_;  ///< one survey at a time; taken before all others

  driver driver_;
};

}  // namespace asio_wheel::detail
