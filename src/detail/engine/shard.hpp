// L2 engine: a lock, a wheel and the waits that live there.
#pragma once

#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>
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
#include <utility>

namespace asio_wheel::detail {

class wheel_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// The waits of timers that were cancelled without a look at them.
///
/// A cancel needs three cache lines that are rarely at hand: the wait's, its cell's in the wheel,
/// and that cell's chunk's. With a hundred thousand waits pending, waiting for them is most of what
/// a cancel takes. So a timer with a single wait asks for that memory ahead of the lock
/// (timer_state.cpp), empties its own list, which it has at hand, and leaves the wait's address
/// here. The rest is done for up to 64 waits in a row, when the memory has come: a third less for
/// each cancel and start at 100,000 waits (bench/LOG.md).
///
/// That is safe because a wait in a timer's list can always be cancelled, and because nobody looks
/// at a wait of the shard before the cancels are carried out: every function of the shard that does
/// begins with apply_deferred_cancels().
class deferred_cancels {
public:
  [[nodiscard]] bool empty() const noexcept;

  /// Whether it is time to carry out what is here: later for a thread of another shard, whose
  /// caches the waits are not likely to be in.
  [[nodiscard]] bool is_time(bool is_local) const noexcept;

  /// Requires that there is room.
  void add(timer_wait_op& op) noexcept;

  /// Forgets them, and returns them in order. They stay where they are until the next add(). As
  /// many as `ahead` pointers behind them can be read, too, for a prefetch: old ones, or null.
  [[nodiscard]] std::span<timer_wait_op*> take() noexcept;
  static constexpr std::size_t ahead = 4;

private:
  static constexpr std::size_t most = 64;

  std::uint8_t size_ = 0;
  std::array<timer_wait_op*, most + ahead> ops_{};
};

/// Orders waits that are due by their tick, and within it by their start, as far as any thread can
/// tell.
struct due_key {
  tick due{};
  std::uint64_t sequence = 0;

  friend bool operator<(const due_key& a, const due_key& b) noexcept
  {
    return a.due != b.due ? a.due < b.due : a.sequence < b.sequence;
  }
};

/// One of the independent parts of a wheel. A thread starts all its waits in one shard, so that
/// threads keep out of each other's way.
///
/// Here are the transitions of a wait's life (wait_op.hpp). A shard calls nobody: it is told what
/// time it is and what to do with its waits, and says what is due, what has ended, and what there
/// is to wake up for.
class alignas(128) ASIO_WHEEL_LOCK shard : spin_lock {
public:
  /// How many waits are worked on without a break, so that other threads get the lock.
  static constexpr int step = 64;

  shard(wheel_core& c, std::size_t n, wheel_geometry geometry, const wheel_clock& clock);

  using spin_lock::assert_held;
  using spin_lock::lock;
  using spin_lock::unlock;

  /// Whether the context is going away: no wait may be filed any more.
  [[nodiscard]] bool is_closed() const noexcept ASIO_WHEEL_REQUIRES(this);

  // file

  /// Files a new wait. Returns a tick to wake up at. Throws std::bad_alloc,
  /// with nothing changed.
  [[nodiscard]] tick file(wait_op& op, tick when) ASIO_WHEEL_REQUIRES(this);

  /// Ends a wait that was not filed with too_many_pending.
  void reject(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Puts the deadline of an operation into the list of its guard.
  void guard(wait_op& op, wait_list& guarded) noexcept ASIO_WHEEL_REQUIRES(this)
  {
    set_state(op, wait_state::guarded);
    op.sequence_ = sequence_ & wait_op::last_sequence;  // for is_all_cancelled()
    guarded.push_back(op);
  }

  // A task that repeats announces its next wait as a run begins, and files it when that is over. In
  // between the wait is pending, so cancel_all() ends it.

  /// Counts a wait that is to be filed here. Returns a number for the two functions below.
  [[nodiscard]] std::uint64_t announce() noexcept ASIO_WHEEL_REQUIRES(this)
  {
    ++started_;
    return sequence_;
  }
  /// Call this before the wait is filed, in the same critical section. Returns false if
  /// cancel_all() has ended it: then it must not be filed.
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

  // What becomes of one that has just left that list: it is filed as due, for pop_ended(); ends as
  // cancelled or as refused; or is no longer guarded by anybody.

  void file_due(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  void abort(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  void refuse(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  static void release(wait_op& op) noexcept { set_state(op, wait_state::none); }

  /// Returns a sequence that divides what was started or guarded before from what comes later.
  [[nodiscard]] std::uint64_t divide_starts() noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return sequence_++;
  }

  /// Returns true if a wait was started or guarded behind that sequence.
  [[nodiscard]] static bool is_later(const wait_op& op, std::uint64_t sequence) noexcept
  {
    return op.sequence_ > sequence;
  }

  /// Whether a wait that was filed has not begun yet.
  [[nodiscard]] static bool is_reachable(const wait_op& op) noexcept
  {
    return op.state_ != wait_state::none;
  }

  /// Whether a wait that was sent, or was to be sent, would expire now if it began.
  [[nodiscard]] bool is_to_expire(const wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return op.state_ != wait_state::cancelled && op.state_ != wait_state::rejected &&
           !is_all_cancelled(op);
  }

  /// Files a lazy wait anew if it is filed for later than `when`. Returns a tick to wake up at;
  /// no_tick if it did not.
  tick refile_earlier(timer_wait_op& op, tick when) noexcept ASIO_WHEEL_REQUIRES(this);

  // rest

  /// A lazy wait **rests** while nobody waits for it: it stays filed for whoever needs it next, but
  /// is not pending. When a shard has no other waits, those that rest are to be erased, because
  /// nothing may keep the context running for them (take_unneeded()).
  [[nodiscard]] static bool rests(const wait_op& op) noexcept { return op.rests_; }

  /// Returns true if it is filed, so that it may rest.
  [[nodiscard]] bool may_rest(const timer_wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return op.state_ == wait_state::filed && !is_all_cancelled(op) && !closed_;
  }

  void start_resting(timer_wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  void stop_resting(timer_wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Notes for take_unneeded() if nothing is left but what rests.
  void note_if_idle() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Erases one that rests.
  void erase_resting(timer_wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] timer_wait_op* pop_resting() noexcept ASIO_WHEEL_REQUIRES(this);

  // cancel: how many waits that ends

  std::size_t cancel(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// The oldest of a timer's waits. 0 also if `step` were looked at that cancel_all() has ended.
  std::size_t cancel_one(timer_wait_list& waits) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Cancels the waits of a timer, the oldest first and at most `step` of them. `is_local` says
  /// whether the caller starts its own waits in this shard.
  std::size_t cancel(timer_wait_list& waits, bool is_local) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Cancels every wait of this shard that has not begun. O(slots).
  std::size_t cancel_all() noexcept ASIO_WHEEL_REQUIRES(this);

  // expire

  /// Moves the wheel to `now`. Whether anything is due then.
  [[nodiscard]] bool advance(tick now) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Moves the wheel back to `now`, if it is ahead of that. What is due stays due.
  void rewind(tick now) noexcept ASIO_WHEEL_REQUIRES(this);

  [[nodiscard]] bool has_due() const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Where the next wait that is due stands among those of all shards. Requires that there is one.
  [[nodiscard]] due_key first_due() const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Whether the next wait that is due is an operation's deadline. Requires that there is one.
  [[nodiscard]] bool is_deadline_due() const noexcept ASIO_WHEEL_REQUIRES(this);

  // begin

  /// The next wait that is due, which leaves the wheel at `now`: begins it, or sends it on its way
  /// if it is `foreign`. Null if there is none, or it was a lazy one whose deadline has moved: that
  /// is filed again, and its tick noted if it is earlier than `refiled`. Requires
  /// apply_deferred_cancels().
  [[nodiscard]] wait_op* pop_due(time_point now, wait_request& request, tick& refiled) noexcept
    ASIO_WHEEL_REQUIRES(this);

  /// Decides how a wait ends that left the wheel at `taken_up`, and makes it unreachable. Returns
  /// none if it is a lazy one that was filed again after all.
  [[nodiscard]] wait_outcome begin(wait_op& op, time_point taken_up, tick& refiled) noexcept
    ASIO_WHEEL_REQUIRES(this);

  /// Whether there are waits for pop_ended().
  [[nodiscard]] bool has_ended() const noexcept ASIO_WHEEL_REQUIRES(this);

  /// The next wait that was cancelled, refused or requeued, other than an operation's deadline.
  [[nodiscard]] wait_op* pop_ended(wait_request& request) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Whether there are deadlines of operations that were cancelled, refused or requeued.
  [[nodiscard]] bool has_deadlines() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return !deadlines_.empty() || !firing_.empty();
  }

  /// Makes those there are the next for pop_deadline(). What comes later waits for the next call.
  void gather_deadlines() noexcept ASIO_WHEEL_REQUIRES(this) { firing_.splice_back(deadlines_); }
  [[nodiscard]] wait_op* pop_deadline() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Puts a deadline that was popped behind those that are gathered.
  void requeue_deadline(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Keeps a wait that its executor has refused, or whose operation's result it has, until
  /// retry_refused(). Requires that the shard is not closed.
  void keep_refused(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  void keep_finished(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Leaves what was refused to pop_ended() and pop_deadline() again.
  void retry_refused() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Handlers that have begun: of waits, and of operations that have a deadline.
  [[nodiscard]] std::uint64_t begun() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return begun_ + deadlines_met_;
  }

  /// The handler begins of an operation that is not counted as `met`.
  void count_begun() noexcept ASIO_WHEEL_REQUIRES(this) { ++begun_; }

  // destroy

  /// Lets no new waits in. Those there are, are for pop_remaining().
  void close() noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] wait_op* pop_remaining() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Whether it is a deadline whose operation has ended, and left its result behind.
  [[nodiscard]] static bool is_finished(const wait_op& op) noexcept
  {
    return op.state_ == wait_state::finished;
  }

  // How these waits end is not told to anybody. Whether they were pending until now.

  /// Makes a wait unreachable that is out of the wheel and will not be called.
  bool drop(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// The operation of a deadline has ended: takes the deadline out, wherever it is.
  bool drop_deadline(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// The same if the deadline is known to be filed.
  bool drop_filed(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);

  /// Cut the tie to the handler's slot, from here and from there.
  ASIO_WHEEL_EXPORT static void unlink(wait_op& op) noexcept;
  static void slot_unlinked(wait_op& op) noexcept { op.linked_ = false; }

  // What there is to wake up for.

  /// The first tick to which advance() has anything to do; no_tick if no wait is filed that is not
  /// due. Takes the lock if that has to be found out. A thread that makes it earlier asks for a
  /// wake-up afterwards.
  [[nodiscard]] tick next_tick() noexcept ASIO_WHEEL_EXCLUDES(this);

  /// What there is to wake up for no more: a tick; tick 0 if nothing is left but what rests;
  /// no_tick if there is nothing to say, or somebody has looked ahead since. Says it once.
  [[nodiscard, gnu::noinline]] tick take_unneeded() noexcept ASIO_WHEEL_REQUIRES(this);

  /// Whether take_unneeded() has something to say.
  [[nodiscard]] bool has_unneeded() const noexcept;

  // What there is to tell.

  /// Waits that can still be cancelled.
  [[nodiscard]] std::uint64_t pending() const noexcept ASIO_WHEEL_REQUIRES(this)
  {
    return started_ - expired_ - cancelled_ - deadlines_met_ - destroyed_;
  }
  void add_to(wheel_stats& stats) const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Whether a wait was cancelled by cancel_all(). Such a wait is where it was, but that what was
  /// in the wheel is drained.
  [[nodiscard]] bool is_all_cancelled(const wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this);

  // A survey of the waits, in pieces; one at a time (core_survey.cpp).

  [[nodiscard]] wheel_walk begin_walk() const noexcept ASIO_WHEEL_NO_LOCK_ANALYSIS
  {
    return wheel_.begin_walk();  // which reads a constant
  }
  [[nodiscard]] timing_wheel& wheel() noexcept ASIO_WHEEL_REQUIRES(this) { return wheel_; }

  /// The next entries to look at, as timing_wheel::walk() finds them.
  [[nodiscard]] std::size_t walk(wheel_walk& way, std::span<wheel_entry*> found) noexcept
    ASIO_WHEEL_REQUIRES(this)
  {
    apply_deferred_cancels();
    return wheel_.walk(way, found);
  }

  /// When a wait expires, as things stand; time_point::max() is never.
  [[nodiscard]] time_point expiry_of(const wait_op& op) const noexcept ASIO_WHEEL_REQUIRES(this);

  /// Carries out the cancels that were put off.
  void apply_deferred_cancels() noexcept ASIO_WHEEL_REQUIRES(this);

private:
  /// The only one who writes a wait's state.
  static void set_state(wait_op& op, wait_state to) noexcept
  {
    assert(may_follow(to, op.state_));
    op.state_ = to;
  }

  [[nodiscard]] static wait_link& link_of(const wait_op& op) noexcept;
  static void unlink_all(wait_op& op) noexcept;

  [[nodiscard]] static wait_request send(wait_op& op) noexcept;
  [[nodiscard]] wait_outcome decide(wait_op& op, time_point taken_up, tick& refiled) noexcept
    ASIO_WHEEL_REQUIRES(this);
  void set_next(tick next) noexcept ASIO_WHEEL_REQUIRES(this);
  void drop_unneeded() noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard, gnu::noinline]] bool is_first(tick unneeded, tick next) noexcept
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
  void put_ended(wait_op& op) noexcept ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] bool refile_later(lazy_wait_op& op, time_point now, tick& refiled) noexcept
    ASIO_WHEEL_REQUIRES(this);
  [[nodiscard]] bool end_uncalled(wait_op& op, std::uint64_t& ended) noexcept
    ASIO_WHEEL_REQUIRES(this);

  // What a start and a cancel of a timer write, but for the wheel and the list of cancels, is in
  // one cache line with the lock, for the sake of threads that come here to cancel what another one
  // started.
  bool closed_ ASIO_WHEEL_GUARDED_BY(this) = false;
  std::uint64_t sequence_ ASIO_WHEEL_GUARDED_BY(this) = 0;  ///< of the latest start
  std::uint64_t started_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t cancelled_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  /// Sequence of the last wait that cancel_all() speaks of, and how many of these waits have not
  /// been taken up yet.
  std::uint64_t all_cancelled_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t left_of_cancelled_ ASIO_WHEEL_GUARDED_BY(this) = 0;

  /// The earliest tick that a wait which was taken out was to be woken for, if the driver is still
  /// to be told. Read without the lock by has_unneeded().
  std::atomic<tick> unneeded_{no_tick};

  /// Of next_tick(); `unknown` if nobody has looked since that was unneeded. While unneeded_ is to
  /// be told, next_ may be too early.
  std::atomic<tick> next_{no_tick};
  static constexpr tick unknown{};

  /// What next_ becomes when the wait is erased for which it is known: the next tick that was known
  /// before that wait was filed. A server files its requests' deadlines one after the other, and
  /// erases each before the next. To look for what comes behind each would be a walk through the
  /// wheel. Equal to next_ if that is not known; no_tick if next_ is `unknown`.
  tick later_ ASIO_WHEEL_GUARDED_BY(this) = no_tick;

  std::size_t number_resting_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  wait_list ended_ ASIO_WHEEL_GUARDED_BY(this);  ///< out of the wheel, and not to expire
  std::uint64_t begun_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  deferred_cancels deferred_ ASIO_WHEEL_GUARDED_BY(this);
  alignas(64) timing_wheel wheel_ ASIO_WHEEL_GUARDED_BY(this);

  // What starts and cancels of timers leave alone. What an expiry writes is next to shard's
  // members.
  alignas(64) log2_histogram lateness_ ASIO_WHEEL_GUARDED_BY(this);
  std::uint64_t rejected_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t destroyed_ ASIO_WHEEL_GUARDED_BY(this) = 0;  ///< while pending
  /// Deadlines whose operation ended before them.
  std::uint64_t deadlines_met_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  std::uint64_t expired_ ASIO_WHEEL_GUARDED_BY(this) = 0;
  timer_wait_list resting_ ASIO_WHEEL_GUARDED_BY(this);
  wait_list deadlines_ ASIO_WHEEL_GUARDED_BY(this);  ///< of operations: ended, or due and requeued
  wait_list firing_ ASIO_WHEEL_GUARDED_BY(this);     ///< those that were gathered
  wait_list refused_ ASIO_WHEEL_GUARDED_BY(this);    ///< by their executors, of pop_ended()
  wait_list refused_deadlines_ ASIO_WHEEL_GUARDED_BY(this);  ///< the same of pop_deadline()
  const wheel_clock& clock_;

  const std::type_info* described_ = nullptr;

public:
  // What deliveries need.

  wheel_core& core;
  const std::size_t number;  ///< below max_shards
  shard* older = nullptr;    ///< the shard that was made before this one; null if none was
  delivery ended_delivery;   ///< of the waits that have ended

  /// Takes the answer of a wait that was asked for its handler's type (wait_request::describe);
  /// null if types have no names in this program.
  void describe(const std::type_info* handler) noexcept { described_ = handler; }
  [[nodiscard]] const std::type_info* described() const noexcept { return described_; }
};

}  // namespace asio_wheel::detail
