// L2 engine: the shards of one wheel, and how their waits get to their handlers.
#pragma once

#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include "../base/locks.hpp"
#include "deadlines_under_way.hpp"
#include "driver.hpp"
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
#include <thread>

namespace asio_wheel::detail {

/// Counts the threads that have one.
class thread_inside {
public:
  explicit thread_inside(std::atomic<int>& threads) noexcept : threads_(threads) { ++threads_; }
  thread_inside(const thread_inside&) = delete;
  thread_inside& operator=(const thread_inside&) = delete;
  ~thread_inside() { --threads_; }

private:
  std::atomic<int>& threads_;
};

/// All shards of a wheel, the limit to their waits, the driver, and the deliveries that call
/// handlers. The service and every timer count as owners, so a timer may outlive its context: it
/// finds the shards closed then.
///
/// There are two ways to a handler. Waits that are **due** are taken from the shards one by one, in
/// one order. Waits that have **ended** without being due, mostly cancelled waits, are taken from
/// each shard alone, so that cancelling threads keep out of each other's way.
///
/// A deadline of an operation **fires** when it has come or has ended: it cancels the operation. It
/// must not reach an I/O object that a handler has destroyed before. The object's operations are
/// aborted then, but their completions are still queued in the context. So a separate function lets
/// deadlines fire. It is posted when a deadline is next, and until it runs, no handler of a wait is
/// called. By then all that was queued before has completed, and an ended operation has erased its
/// deadline. An operation may itself be a wait that has ended. So if there are any, the function
/// **gives way** to a delivery of theirs, and is posted anew behind that.
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
  deadlines_under_way under_way;
  gate posting_gate;  ///< the context does not go while a thread is inside

  /// Starts a wait; the core takes it over. Throws std::bad_alloc, with nothing changed and the
  /// wait not taken over.
  [[gnu::flatten]] void start(wait_op& op, tick when);

  // A start in parts, for callers with more to do in the critical section.

  /// Files the wait, rejects it if there are too many, or destroys it if the shards are closed.
  /// Returns true if it was filed: `when` then becomes a tick to wake up at. If not, the core may
  /// be gone when the lock is released. Throws std::bad_alloc, with nothing changed.
  ///
  /// @param announced  the wait was counted before (shard::announce), so the limit does not apply.
  [[nodiscard]] bool file(shard_lock& lock, wait_op& op, tick& when, bool announced = false);

  /// Call this after filing: makes sure of a wake-up.
  void wake_at(maybe_tick when) noexcept;

  /// Requests a pass at the next tick that tries again what executors have refused.
  void retry_later() noexcept;

  /// This thread delivers to other executors. Returns true if another one has done so, too.
  bool note_thread() noexcept;

  /// How many handlers have begun, of waits and of operations with a deadline.
  [[nodiscard]] std::uint64_t handlers_begun() const noexcept;

  /// In ticks, for how long another thread may have an aborted operation in hand.
  static constexpr std::uint8_t ticks_in_doubt = 4;

  /// Returns true if a wait was sent to another executor within the latest `ticks_in_doubt`.
  [[nodiscard]] bool has_sent_lately() const noexcept
  {
    return has_sent_.load(std::memory_order_relaxed) ||
           passed_.load(std::memory_order_relaxed) < doubt_ends_.load(std::memory_order_relaxed);
  }

  /// Returns true if handlers of waits are about to be called, here or elsewhere.
  [[nodiscard]] bool has_calls_ahead() const noexcept;

  /// Keeps the core for a deadline that is not filed any more. Requires the lock of its shard.
  void keep_for(wait_op& deadline) noexcept;

  /// Keeps the count that max_pending is compared with.
  void count_ended(std::size_t n) noexcept;
  void count_started(std::size_t n) noexcept;

  /// Sets the pressure. Passes tell the timeouts that follow it.
  void set_pressure(double p) noexcept;
  [[nodiscard]] pressure& pressure_on() noexcept { return pressure_; }

  std::size_t cancel_all();
  [[nodiscard]] std::size_t pending() const noexcept;
  [[nodiscard]] wheel_stats stats() const noexcept;

  // For surveys of all waits (wheel_timer_service_survey.cpp).
  void erase_resting(shard& sh) noexcept ASIO_WHEEL_EXCLUDES(sh);
  std::mutex survey_mutex;  ///< one survey at a time; taken before all others

  // For virtual_time: see core_clock.cpp. Only one thread at a time may move a stopped clock.

  /// Stops the clock at its present reading. Returns true if it was running.
  [[nodiscard]] bool stop_clock() noexcept;

  /// Moves the stopped clock and the wheels to the next time at which a wait is due, and posts its
  /// delivery. Returns false if that time is after `limit`.
  [[nodiscard]] bool step_clock(time_point limit) noexcept;

  /// Returns true if no filed wait will ever be due.
  [[nodiscard]] bool is_at_rest() noexcept;

  /// Moves the stopped clock to `t`. Requires that nothing due by `t` is left.
  void move_clock(time_point t) noexcept { clock.stop_at(t); }

  /// Call this when the clock stands for a while: sets the timer, which the clock's steps leave
  /// alone.
  void rest_clock() noexcept { driver_.rearm(); }

  /// The process is a child of fork(), and may use the context from here on.
  void go_on_in_child() noexcept { driver_.go_on_in_child(); }

  /// Lets the clock run. If it goes back, the wheels go back with it.
  void start_clock() noexcept;

  /// Lets no new wait in, destroys all waits, and leaves the context alone from then on. May be
  /// repeated.
  void close() noexcept;

private:
  friend class shard_lock;
  friend void tell_driver(shard& sh) noexcept;

  static constexpr time_point none_found{};

  /// What a delivery is to do next.
  struct next_wait {
    wait_op* op = nullptr;  ///< null: nothing
    shard* at = nullptr;
    wait_request request = wait_request::send();
    bool post = false;      ///< first, post another delivery
    bool fire = false;      ///< first, call post_deadlines()
    bool more = false;      ///< afterwards, there may be more waits
    maybe_tick refiled;     ///< the earliest tick filed again
    shard* idle = nullptr;  ///< afterwards, tell the driver of it
  };

  [[gnu::noinline]] void file_overdue(wait_op& op, shard& sh) ASIO_WHEEL_REQUIRES(sh);

  [[nodiscard]] maybe_tick next_tick() noexcept override;
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
  void note_sent() noexcept;
  [[nodiscard]] wait_op* pop_due(shard& sh, cancels_applied applied, next_wait& next,
                                 time_point now) noexcept ASIO_WHEEL_REQUIRES(due_mutex_)
    ASIO_WHEEL_REQUIRES(sh);
  void cancel_wake_up(shard& sh, tick unneeded) noexcept ASIO_WHEEL_EXCLUDES(sh);
  [[nodiscard]] bool is_ended_requested() const noexcept;
  [[nodiscard]] bool begin_delivery(bool behind_pass) noexcept;
  void note_found() noexcept ASIO_WHEEL_REQUIRES(due_mutex_);
  [[gnu::noinline]] void post_ended(shard& sh) noexcept ASIO_WHEEL_EXCLUDES(sh);
  [[gnu::flatten]] void deliver_ended(shard& sh) ASIO_WHEEL_EXCLUDES(sh);
  [[nodiscard, gnu::noinline]] int begin_ended(shard& sh) noexcept;
  void take_ended(next_wait& next, shard& sh) noexcept;

  [[gnu::noinline]] void post_deadlines() noexcept;
  void fire_deadlines();
  [[nodiscard]] bool give_way(std::uint64_t ended) noexcept;
  [[gnu::noinline, gnu::cold]] void resume_deadlines(shard& sh) noexcept ASIO_WHEEL_EXCLUDES(sh);
  [[nodiscard]] wait_op* take_due_deadline(next_wait& next, time_point now) noexcept;
  [[nodiscard]] wait_op* take_ended_deadline(next_wait& next) noexcept;
  void resume() noexcept;
  [[nodiscard]] bool take_retry(tick now) noexcept;
  void retry_refused() noexcept;
  void destroy_later(wait_op& op, wait_list& all) noexcept;

  // What a wake-up touches stands together, as far as locks allow, and large members behind it: a
  // lone timer finds the caches cold (bench/LOG.md).
  std::atomic<std::size_t> pending_{0};  ///< kept only if there is a limit
  std::atomic<tick> passed_{};           ///< the latest tick of a pass
  std::atomic<maybe_tick> retry_at_{};   ///< when to try again what executors have refused
  std::atomic<bool> is_retry_due_{false};
  std::atomic<bool> is_pressure_set_{false};  ///< if not, passes need not sweep

  spin_lock advance_mutex_;  ///< keeps clock and wheels in step; taken before the shards' locks

  std::atomic<int> delivering_{0};               ///< threads that deliver what is due
  std::atomic<std::thread::id> first_thread_{};  ///< that delivers to others
  std::atomic<bool> has_several_threads_{false};
  std::atomic<bool> has_sent_{false};       ///< a wait to another executor, since the latest pass
  std::atomic<tick> doubt_ends_{};          ///< as far as passes know of such waits
  std::atomic<std::uint64_t> found_in_{0};  ///< bits of the shards to add to `due_`

  /// The time of a pass whose delivery has not begun; none_found without such a pass.
  std::atomic<time_point> found_due_{none_found};

  mutable spin_lock due_mutex_;  ///< taken before the shards' locks
  /// Waits taken since nothing was due, and the largest number so far.
  std::uint64_t burst_ ASIO_WHEEL_GUARDED_BY(due_mutex_) = 0;
  std::uint64_t largest_burst_ ASIO_WHEEL_GUARDED_BY(due_mutex_) = 0;
  due_shards due_ ASIO_WHEEL_GUARDED_BY(due_mutex_){shards};
  delivery due_delivery_;
  delivery deadline_delivery_;
  std::atomic<bool> has_given_way_{false};  ///< until the delivery of ended waits has ended
  std::atomic<int> ways_given_{0};          ///< in a row

  pressure pressure_{clock};

  driver driver_;
};

}  // namespace asio_wheel::detail
