// L2 engine: a lock, a wheel and the waits that live there.
#pragma once

#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include "../base/locks.hpp"
#include "../wheel/timing_wheel.hpp"
#include "posting.hpp"
#include "wheel_clock.hpp"

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <typeinfo>

namespace asio_wheel::detail {

class wheel_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// The waits of timers that were cancelled without touching them.
///
/// A cancel needs three cache lines that are rarely at hand: the wait's, its cell's in the wheel,
/// and that cell's chunk's. With a hundred thousand waits pending, most of a cancel's time goes
/// into waiting for them. So a timer with a single wait prefetches these lines before it locks
/// (timer_state.cpp), empties its own list, and leaves the wait's address here. The rest is done
/// for up to 64 waits in a row, when the lines have come: a third less for each cancel and start at
/// 100,000 waits (bench/LOG.md).
///
/// This is safe because a wait in a timer's list can always be cancelled, and because nobody reads
/// a wait of the shard before the cancels are applied: every function of the shard that reads waits
/// begins with apply_deferred_cancels(), or requires what that returns, or its caller does.
class deferred_cancels {
public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Returns true if it is time to apply the cancels: later for a thread of another shard, which
  /// hardly has the waits in its caches.
  [[nodiscard]] bool is_time(bool is_local) const noexcept;

  /// Requires that it is not full.
  void add(timer_wait_op& op) noexcept;

  /// Empties this, and returns the waits in order. The pointers stay valid until the next add().
  /// `ahead` pointers behind them can be read, too, for a prefetch: old pointers, or null.
  [[nodiscard]] std::span<timer_wait_op*> take() noexcept;
  static constexpr std::size_t ahead = 4;

private:
  static constexpr std::size_t most = 64;

  std::uint8_t size_ = 0;
  std::array<timer_wait_op*, most + ahead> ops_{};
};

/// Says that no cancel of a shard is deferred, as long as the caller holds the lock. Only
/// a shard makes one.
class cancels_applied {
  friend class shard;
  cancels_applied() = default;
};

/// Orders due waits by their tick, and within a tick by their start, as far as any thread can tell.
struct due_key {
  tick due{};
  std::uint64_t sequence = 0;

  friend bool operator<(const due_key& a, const due_key& b) noexcept
  {
    return a.due != b.due ? a.due < b.due : a.sequence < b.sequence;
  }
};

/// Returns true if a wait may go from one state to the other: the second table of wait_op.hpp.
[[nodiscard]] constexpr bool may_follow(wait_state to, wait_state from) noexcept
{
  using enum wait_state;
  if (to == none) return true;
  switch (from) {
    case none:
      return to == filed || to == rejected || to == guarded || to == cancelled || to == finished;
    case filed: return to == sent || to == filed || to == cancelled;
    case sent: return to == filed || to == requeued || to == cancelled;
    case requeued: return to == sent || to == cancelled;
    case guarded: return to == requeued || to == cancelled || to == rejected;
    case finished: return to == finished;
    default: return false;
  }
}

/// An independent part of a wheel. A thread starts all its waits in one shard, so that threads keep
/// out of each other's way.
///
/// Here are the transitions of a wait's life (wait_op.hpp). A shard calls nobody but the clock and
/// the deadlines of lazy waits: its callers tell it what to do with its waits, and it says what is
/// due, what has ended, and when to wake up.
class alignas(128) ASIO_WHEEL_LOCK shard : spin_lock {
public:
  /// How many waits one critical section may work on, so that other threads get the lock.
  static constexpr int step = 64;

  shard(wheel_core& c, std::size_t n, wheel_geometry geometry, const wheel_clock& clock);

  using spin_lock::assert_held;
  using spin_lock::lock;
  using spin_lock::unlock;

  /// Returns true if the context is going away: no wait may be filed any more.
  [[nodiscard]] bool is_closed() const noexcept ASIO_WHEEL_REQUIRES(this) { return closed_; }

  // file

  /// Files a new wait. Returns a tick to wake up at. Throws std::bad_alloc, with nothing changed.
  [[nodiscard]] tick file(wait_op& op, tick when) ASIO_WHEEL_REQUIRES(this);

  /// Ends a wait with too_many_pending instead of filing it.
  void reject(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Puts the deadline of an operation into the list of its guard.
  void guard(wait_op& op, wait_list& guarded) noexcept ASIO_WHEEL_REQUIRES(this)
  {
    set_state(op, wait_state::guarded);
    op.sequence_ = sequence_ & wait_op::last_sequence;  // for is_all_cancelled()
    guarded.push_back(op);
  }

  // A task that repeats announces its next wait as a run begins, and files it when the run is over.
  // In between the wait is pending, so cancel_all() ends it.

  /// Counts a wait to be filed here, in the place of the wait that begins (wait_outcome::repeats).
  /// Returns a number for the functions below.
  [[nodiscard]] std::uint64_t announce() noexcept ASIO_WHEEL_REQUIRES(this)
  {
    ++started_;
    return sequence_;
  }
  /// The number of the wait that was filed last.
  [[nodiscard]] std::uint64_t last_filed() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return sequence_;
  }
  /// Call this before the wait is filed, in the same critical section. Returns false if
  /// cancel_all() has ended the wait: do not file it then.
  [[nodiscard]] bool take_announced(std::uint64_t announced) noexcept ASIO_WHEEL_REQUIRES(this)
  {
    if (is_announced_cancelled(announced)) {
      --left_of_cancelled_;
      return false;
    }
    --started_;  // file() counts it again
    return true;
  }
  /// Cancels a wait that will not be filed after all. Returns how many waits that ends.
  std::size_t cancel_announced(std::uint64_t announced) noexcept ASIO_WHEEL_REQUIRES(this)
  {
    if (is_announced_cancelled(announced)) {
      --left_of_cancelled_;
      return 0;
    }
    ++cancelled_;
    return 1;
  }
  [[nodiscard]] bool is_announced_cancelled(std::uint64_t announced) const noexcept
    ASIO_WHEEL_REQUIRES(this)
  {
    return announced <= all_cancelled_;
  }

  // What happens to a deadline that has just left its guard's list: it is filed as due, for
  // pop_deadline(); ends as cancelled or as rejected; or is not guarded any more.

  void file_due(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  void put_ended(wait_op& op, wait_state s) noexcept ASIO_WHEEL_REQUIRES(this);
  static void release(wait_op& op) noexcept { set_state(op, wait_state::none); }

  /// Returns a sequence between what was started or guarded before and what comes later.
  [[nodiscard]] std::uint64_t divide_starts() noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return sequence_++;
  }

  /// Returns true if a wait was started or guarded after `sequence`.
  [[nodiscard]] static bool is_later(const wait_op& op, std::uint64_t sequence) noexcept
  {
    return op.sequence_ > sequence;
  }

  /// Returns true if a filed wait has not begun yet.
  [[nodiscard]] static bool is_reachable(const wait_op& op) noexcept
  {
    return op.state_ != wait_state::none;
  }

  /// Returns true if a wait that is sent, or about to be, would expire if it began now.
  [[nodiscard]] bool is_to_expire(const wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return op.state_ != wait_state::cancelled && op.state_ != wait_state::rejected &&
           !is_all_cancelled(op);
  }

  /// Files a lazy wait anew if it is filed for later than `when`. Returns a tick to wake up at if
  /// so.
  maybe_tick refile_earlier(timer_wait_op& op, tick when) noexcept ASIO_WHEEL_REQUIRES(this);

  // rest

  /// A lazy wait **rests** while nobody waits for it: it stays filed for its next use, but is not
  /// pending. When a shard has no other waits, resting waits must be erased, because they may not
  /// keep the context running (take_unneeded()).
  [[nodiscard]] static bool rests(const wait_op& op) noexcept { return op.rests_; }

  /// Returns true if the wait is filed, so that it may rest.
  [[nodiscard]] bool may_rest(const timer_wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return op.state_ == wait_state::filed && !is_all_cancelled(op) && !closed_;
  }

  void start_resting(timer_wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  void stop_resting(timer_wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Notes for take_unneeded() if only resting waits are left.
  void note_if_idle() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Erases a resting wait.
  void erase_resting(timer_wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] timer_wait_op* pop_resting() noexcept ASIO_WHEEL_REQUIRES(this);

  // cancel; these return how many waits they end

  std::size_t cancel(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Cancels the oldest of a timer's waits. Returns 0 also after `step` waits that cancel_all() had
  /// ended.
  std::size_t cancel_one(timer_wait_list& waits) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Cancels the waits of a timer, the oldest first and at most `step` of them. `is_local` is true
  /// if the caller starts its own waits in this shard.
  std::size_t cancel(timer_wait_list& waits, bool is_local) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Cancels every wait of this shard that has not begun. O(slots).
  std::size_t cancel_all() noexcept ASIO_WHEEL_REQUIRES(this);

  // expire

  /// Moves the wheel to `now`. Returns true if anything is due then.
  [[nodiscard]] bool advance(tick now) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Moves the wheel back to `now`, if it is ahead. Due waits stay due.
  void rewind(tick now) noexcept ASIO_WHEEL_REQUIRES(this);

  [[nodiscard]] bool has_due(cancels_applied) const noexcept ASIO_WHEEL_REQUIRES(this);

  /// The place of the next due wait among all shards. Requires has_due().
  [[nodiscard]] due_key first_due(cancels_applied) const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Returns true if the next due wait is an operation's deadline. Requires has_due().
  [[nodiscard]] bool is_deadline_due(cancels_applied) const noexcept ASIO_WHEEL_REQUIRES(this);

  // begin

  /// Takes the next due wait from the wheel at `now`: begins it, or sends it on its way if it is
  /// `foreign`. Null if nothing is due, or if the deadline of a lazy wait has moved: files this
  /// wait again, and moves `refiled` to its tick if the tick is earlier.
  [[nodiscard]] wait_op* pop_due(cancels_applied applied, time_point now, wait_request& request,
                                 maybe_tick& refiled) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Decides how a wait ends, and makes it unreachable. The wait left the wheel at `taken_up`.
  /// Returns none if it is a lazy wait that was filed again after all.
  [[nodiscard]] wait_outcome begin(wait_op& op, time_point taken_up, maybe_tick& refiled) noexcept
    ASIO_WHEEL_REQUIRES(this);

  /// A wait, except an operation's deadline, has arrived at its handler's executor, or was refused
  /// or dropped there.
  void note_arrived() noexcept ASIO_WHEEL_REQUIRES(this)
  {
    assert(on_their_way_ != 0);
    --on_their_way_;
  }

  /// Returns true if handlers of waits are about to be called, here or elsewhere.
  [[nodiscard]] bool has_calls_ahead(cancels_applied applied) const noexcept
    ASIO_WHEEL_REQUIRES(this)
  {
    return on_their_way_ != 0 || has_due(applied) || has_ended();
  }

  /// Returns true if there are waits for pop_ended().
  [[nodiscard]] bool has_ended() const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Takes the next wait that was cancelled, rejected or requeued, except operations' deadlines.
  [[nodiscard]] wait_op* pop_ended(wait_request& request) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Returns true if there are operations' deadlines that were cancelled, rejected or requeued.
  [[nodiscard]] bool has_deadlines() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return !deadlines_.empty() || !gathered_.empty();
  }

  /// Gathers these deadlines for pop_deadline(). Later deadlines wait for the next call.
  void gather_deadlines() noexcept ASIO_WHEEL_REQUIRES(this) { gathered_.splice_back(deadlines_); }
  [[nodiscard]] wait_op* pop_deadline() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Puts back a popped deadline, for the next gather_deadlines().
  void requeue_deadline(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Keeps a refused wait, or a wait with its operation's refused result, until retry_refused().
  /// Requires that the shard is not closed.
  void keep_refused(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  void keep_finished(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Lists what was refused for pop_ended() and pop_deadline() again.
  void retry_refused() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Grows with each handler that begins, of waits and of operations with a deadline; sometimes by
  /// more.
  [[nodiscard]] std::uint64_t begun() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return begun_ + deadlines_met_;
  }

  /// The handler of an operation with a deadline begins.
  void count_begun() noexcept ASIO_WHEEL_REQUIRES(this) { ++begun_; }

  // destroy

  /// Lets no new waits in. pop_remaining() takes the present waits.
  void close() noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] wait_op* pop_remaining() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Returns true for a deadline whose operation has ended, and has left its result behind.
  [[nodiscard]] static bool is_finished(const wait_op& op) noexcept
  {
    return op.state_ == wait_state::finished;
  }

  // These waits end untold. The functions return true if the wait was pending until now.

  /// Makes a wait unreachable that has left the wheel and will not be called.
  bool drop(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// The operation of a deadline has ended: erases the deadline, wherever it is.
  bool drop_deadline(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// drop_deadline() for a filed deadline.
  bool drop_filed(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Unties the wait from its handler's slot: from both ends, or after the slot's end is untied.
  ASIO_WHEEL_EXPORT static void unlink(wait_op& op) noexcept;
  static void slot_unlinked(wait_op& op) noexcept { op.linked_ = false; }

  // When to wake up.

  /// The first tick at which advance() has anything to do; none if nothing is filed except due
  /// waits. Takes the lock if the tick is unknown. A thread that makes the tick earlier requests a
  /// wake-up afterwards.
  [[nodiscard]] maybe_tick next_tick() noexcept ASIO_WHEEL_EXCLUDES(this);

  /// Returns, once, the wake-up that is not needed any more: a tick; tick 0 if only resting waits
  /// are left; none if there is none, or if set_next() was called since.
  [[nodiscard]] maybe_tick take_unneeded() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Returns true if take_unneeded() has a tick to return.
  [[nodiscard]] bool has_unneeded() const noexcept
  {
    return bool(unneeded_.load(std::memory_order_relaxed));
  }

  // What a shard reports.

  /// Waits that can still be cancelled.
  [[nodiscard]] std::uint64_t pending() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return started_ - expired_ - cancelled_ - deadlines_met_ - destroyed_;
  }
  void add_to(wheel_stats& stats) const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Returns true if cancel_all() has cancelled the wait. Such a wait stays in place, except that
  /// filed waits are drained.
  [[nodiscard]] bool is_all_cancelled(const wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this);

  // A survey of the waits, in pieces; one at a time (wheel_timer_service_survey.cpp).

  [[nodiscard]] wheel_walk begin_walk() const noexcept ASIO_WHEEL_NO_LOCK_ANALYSIS
  {
    return wheel_.begin_walk();  // reads a constant
  }
  [[nodiscard]] timing_wheel& wheel() noexcept ASIO_WHEEL_REQUIRES(this) { return wheel_; }

  /// The next entries of a survey, as from timing_wheel::walk().
  [[nodiscard]] std::size_t walk(wheel_walk& way, std::span<wheel_entry*> found) noexcept
    ASIO_WHEEL_REQUIRES(this)
  {
    apply_deferred_cancels();
    return wheel_.walk(way, found);
  }

  /// When a wait expires, as of now; time_point::max() is never.
  [[nodiscard]] time_point expiry_of(const wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Applies the deferred cancels.
  cancels_applied apply_deferred_cancels() noexcept ASIO_WHEEL_REQUIRES(this);

  /// For a caller whose lock was taken by a function that has applied them.
  [[nodiscard]] cancels_applied assert_cancels_applied() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    assert(deferred_.empty());
    return {};
  }

private:
  /// What became of a lazy wait whose tick has come.
  enum class refiling : std::uint8_t { not_needed, done, out_of_memory, closed };

  /// Only this function writes a wait's state.
  static void set_state(wait_op& op, wait_state to) noexcept
  {
    assert(may_follow(to, op.state_));
    op.state_ = to;
  }

  [[nodiscard]] static wait_link& link_of(const wait_op& op) noexcept;
  static void unlink_all(wait_op& op) noexcept;

  [[nodiscard]] wait_request send(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] wait_outcome decide(cancels_applied, wait_op& op, time_point taken_up,
                                    maybe_tick& refiled) noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard, gnu::noinline]] wait_request begin_requeued(wait_op& op) noexcept
    ASIO_WHEEL_REQUIRES(this);
  void set_next(maybe_tick next) noexcept ASIO_WHEEL_REQUIRES(this);
  void drop_unneeded() noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard, gnu::noinline]] bool is_first(tick unneeded, maybe_tick next) noexcept
    ASIO_WHEEL_REQUIRES(this);
  void unlist_resting(timer_wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] bool is_idle() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return number_resting_ != 0 && wheel_.size() == number_resting_;
  }
  [[nodiscard]] tick insert(wait_op& op, tick when) ASIO_WHEEL_REQUIRES(this);
  void set_sequence(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  bool erase(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  [[gnu::noinline, gnu::flatten]] void apply_cancels() noexcept ASIO_WHEEL_REQUIRES(this);
  void end_as_cancelled(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  [[gnu::noinline]] std::size_t cancel_some(timer_wait_list& waits) noexcept
    ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] refiling refile_later(lazy_wait_op& op, time_point now,
                                      maybe_tick& refiled) noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] bool end_uncalled(wait_op& op, std::uint64_t& ended) noexcept
    ASIO_WHEEL_REQUIRES(this);

  // What a start and a cancel of a timer write is in one cache line with the lock, except the wheel
  // and the list of cancels. So a thread that cancels another thread's wait needs few lines.
  bool closed_ ASIO_WHEEL_GUARDED_BY(this) = false;
  std::uint64_t sequence_ ASIO_WHEEL_GUARDED_BY(this) = 1;  ///< of the latest start
  std::uint64_t started_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t cancelled_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  /// The last sequence that cancel_all() has cancelled, and how many of these waits are not taken
  /// up yet.
  std::uint64_t all_cancelled_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t left_of_cancelled_ ASIO_WHEEL_GUARDED_BY(this) = 0;

  /// The earliest wake-up of an erased wait, until the driver is told. has_unneeded() reads it
  /// without the lock.
  std::atomic<maybe_tick> unneeded_{};

  /// What next_tick() returns; `unknown` from when the tick is unneeded until set_next(). While the
  /// driver is not told of unneeded_, next_ may be too early.
  std::atomic<maybe_tick> next_{};
  static constexpr tick unknown{};

  /// What next_ becomes when the wait behind it is erased: the value of next_ before this wait was
  /// filed. A server files its requests' deadlines one after the other, and erases each before the
  /// next. Finding the next tick for each would be a walk through the wheel. Equal to next_ if the
  /// earlier value is not known; none if next_ is `unknown`.
  maybe_tick later_ ASIO_WHEEL_GUARDED_BY(this);

  std::size_t number_resting_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  wait_list ended_ ASIO_WHEEL_GUARDED_BY(this);  ///< out of the wheel, for pop_ended()
  std::uint64_t begun_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::size_t on_their_way_ ASIO_WHEEL_GUARDED_BY(this) = 0;  ///< see note_arrived()
  deferred_cancels deferred_ ASIO_WHEEL_GUARDED_BY(this);
  alignas(64) timing_wheel wheel_ ASIO_WHEEL_GUARDED_BY(this);

  // What starts and cancels of timers leave alone.
  alignas(64) log2_histogram lateness_ ASIO_WHEEL_GUARDED_BY(this);
  std::uint64_t rejected_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t destroyed_ ASIO_WHEEL_GUARDED_BY(this) = 0;  ///< while pending
  /// Deadlines of operations that ended in time.
  std::uint64_t deadlines_met_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t expired_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  timer_wait_list resting_ ASIO_WHEEL_GUARDED_BY(this);
  wait_list deadlines_ ASIO_WHEEL_GUARDED_BY(this);  ///< of operations: ended, or due and requeued
  wait_list gathered_ ASIO_WHEEL_GUARDED_BY(this);   ///< of deadlines_, for pop_deadline()
  wait_list refused_ ASIO_WHEEL_GUARDED_BY(this);    ///< refused by executors, for pop_ended()
  wait_list refused_deadlines_
    ASIO_WHEEL_GUARDED_BY(this);  ///< refused by executors, for pop_deadline()
  const wheel_clock& clock_;

  const std::type_info* described_ = nullptr;

public:
  // What deliveries need.

  wheel_core& core;
  const std::size_t number;  ///< below max_shards
  shard* older = nullptr;    ///< the shard made before this shard, or null; for shard_table
  delivery ended_delivery;   ///< of the waits that have ended

  /// Takes the answer of a wait to wait_request::describe: its handler's type; null if types have
  /// no names in this program.
  void describe(const std::type_info* handler) noexcept { described_ = handler; }
  [[nodiscard]] const std::type_info* described() const noexcept { return described_; }
};

}  // namespace asio_wheel::detail
