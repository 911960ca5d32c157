// L2 engine: the life of a wait, from the start to the call of its handler.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/wheel/wheel_entry.hpp>

#include <atomic>
#include <cstdint>

namespace asio_wheel::detail {

// One life for every wait: of a timer, of the wheel itself, of a watchdog, of an operation's
// deadline. Its state (wait_state) changes only in shard::set_state(), under the lock of the wait's
// shard. A wait belongs to one shard from start to end.
//
// A handler is never called, moved or destroyed under a lock. So a thread first makes a wait
// unreachable (no list, no cancellation slot, no cell of the wheel points to it): this is the state
// `none`. Then the thread calls or destroys it.
//
// Where a wait is
//
//   state      in the wheel       in a list of its shard      elsewhere
//   none       -                  -                           not started, or unreachable
//   filed      slot, due queue,   resting_, if it rests       in its timer's list
//              or drained
//   sent       -                  -                           on its way through its handler's
//                                                             executor, which may drop it
//   requeued   -                  ended_, or refused_
//   cancelled  -                  ended_, or refused_         or, if it was sent, still on its way
//   rejected   -                  ended_, or refused_
//   guarded    -                  -                           in the list of its guard
//   finished   -                  refused_deadlines_          stands for its operation's result
//
// An operation's deadline is in deadlines_, gathered_ and refused_deadlines_, instead of ended_ and
// refused_. While such a wait is sent, its operation's state has a holder.
//
// What happens, and who decides
//
//   from       to         what
//   none       filed      file: the thread that starts the wait
//              rejected   file, if there are too many, or no memory for a deadline
//              guarded    file, if a guard's own wait stands for it
//              cancelled  the executor of the handler has refused to abandon an operation: its
//                         deadline has begun
//              finished   the executor of the handler has refused an operation's result
//   filed      none       begin: a delivery, for a handler on the wheel's executor
//              sent       a delivery, for a handler with an executor of its own, or a deadline
//              filed      refile: the deadline of a lazy wait has moved
//              cancelled  cancel
//   sent       none       begin: the handler's executor, right before the call
//              filed      refile, found out there
//              requeued   the executor has refused the wait; a deadline goes behind what is queued
//              cancelled  cancel: what to say is known, when the wait arrives
//   requeued   sent       the next delivery
//              cancelled  cancel
//   cancelled  none       begin
//   rejected   none       begin
//   guarded    requeued, cancelled, rejected
//                         the guard's own wait has ended so
//   finished   finished   the executor has refused the result again
//   any        none       destroy: the context goes, an executor drops the wait, its operation ends
//
// To be due is no state, as it decides nothing. The wait stays in the wheel's due queue, where a
// cancel finds it. A cancel wins until the handler begins.
//
// Two kinds of cancel do not touch the wait, and its state follows later. A timer's cancel is
// deferred (shard.hpp) until a thread reads a wait of the shard. cancel_all() notes a sequence
// number: every wait up to this number is cancelled, and finds out when it leaves the wheel.
//
// The order of locks: a thread takes them from the top down, and may leave some out.
//
//   wheel_core::survey_mutex       one survey at a time
//   wheel_core::advance_mutex_     clock and wheels move in step
//   pressure::mutex_               the timeouts that the pressure shortens
//   wheel_core::due_mutex_         which shard is due next; not with the one below
//   driver::timer_mutex_           the timer, and what it is set for
//   shard_table::making_           a new shard
//   shard                          one at a time; all of them only as virtual time ends
//
// Under a shard's lock only the allocator's locks are taken, and under the timer's only Asio's. The
// locks of keyed_scheduler, simulated_connection, context_gate and deadlines_under_way are released
// before one of these is taken.

class shard;
class wait_op;

/// How a wait ends: what its handler gets.
enum class wait_outcome : std::uint8_t {
  none,       ///< not yet: it is on its way, or was filed again
  expired,    ///< success
  timed_out,  ///< timed_out; of lazy waits only
  exhausted,  ///< too_many_pending: there is no memory to file it again; of lazy waits only
  cancelled,  ///< operation_aborted
  rejected,   ///< too_many_pending
  repeats,    ///< success; the announced next wait has its place. Of lazy waits only
};

/// Returns true if a wait that ends so was pending until it began, and leaves its place.
[[nodiscard]] constexpr bool was_pending(wait_outcome outcome) noexcept
{
  return outcome == wait_outcome::expired || outcome == wait_outcome::timed_out ||
         outcome == wait_outcome::exhausted;
}

/// What a wait is asked to do.
class wait_request {
public:
  /// Call the handler and tell it the outcome, with the memory freed first.
  constexpr wait_request(wait_outcome outcome) noexcept : value_(std::uint8_t(outcome)) {}

  /// Go through the executor of the handler, to be asked again there.
  [[nodiscard]] static constexpr wait_request send() noexcept { return wait_outcome::none; }
  /// Destroy the handler uncalled, and free the memory.
  [[nodiscard]] static constexpr wait_request destroy() noexcept
  {
    return wait_request(first_rare);
  }
  /// Tell shard::describe() the type of the handler, and stay as it is. Requires the lock.
  [[nodiscard]] static constexpr wait_request describe() noexcept
  {
    return wait_request(first_rare + 1);
  }
  /// Give up the count of a wait that rested and has been erased.
  [[nodiscard]] static constexpr wait_request release() noexcept
  {
    return wait_request(first_rare + 2);
  }

  /// Returns true unless it is one of the last three.
  [[nodiscard]] constexpr bool is_call_or_send() const noexcept { return value_ < first_rare; }

  /// What to tell the handler; none if there is nothing to tell yet.
  [[nodiscard]] constexpr wait_outcome outcome() const noexcept { return wait_outcome(value_); }

  friend constexpr bool operator==(wait_request, wait_request) = default;

private:
  static constexpr int first_rare = int(wait_outcome::repeats) + 1;

  explicit constexpr wait_request(int value) noexcept : value_(std::uint8_t(value)) {}

  std::uint8_t value_;  ///< of a call, the outcome
};

/// See the tables above. As wide as the word around it.
enum class wait_state : std::uint64_t {
  none,
  filed,
  sent,
  requeued,
  cancelled,
  rejected,
  guarded,
  finished,
};

/// What a wait leaves in its handler's cancellation slot: the way back to the wait, as long as the
/// wait can be cancelled.
///
/// The wait and its link point to each other, and either may go first. The lock of the wait's shard
/// guards both pointers. `shard_` alone may be read without it, to see if there is a wait left.
class ASIO_WHEEL_EXPORT wait_link {
public:
  wait_link(const wait_link&) = delete;
  wait_link& operator=(const wait_link&) = delete;

  /// Ties the link to a wait of `sh`.
  void connect(shard& sh, wait_op& op) noexcept
  {
    op_ = &op;
    shard_.store(&sh, std::memory_order_release);
  }
  void unlink() noexcept
  {
    op_ = nullptr;
    shard_.store(nullptr, std::memory_order_release);
  }

  /// The wait's shard, read without a lock; null if there is no wait any more.
  [[nodiscard]] shard* at() const noexcept { return shard_.load(std::memory_order_acquire); }

  /// The wait; null if there is none.
  [[nodiscard]] wait_op* wait() const noexcept { return op_; }

protected:
  wait_link() = default;
  ~wait_link();

private:
  std::atomic<shard*> shard_{nullptr};
  wait_op* op_ = nullptr;
};

/// Cancels the wait, if its handler has not begun. A wait has no partial effects to keep, so it
/// grants every type of cancellation.
class ASIO_WHEEL_EXPORT cancel_link : public wait_link {
public:
  void operator()(asio::cancellation_type_t type);
};

/// Base of all waits: thirty-two bytes, with the handler behind them in the same memory.
class wait_op : public wheel_entry {
public:
  /// Does what is requested. `taken_up` is when the wait left the wheel, for the statistics.
  void ask(shard& sh, wait_request request, time_point taken_up = {})
  {
    ask_(*this, sh, request, taken_up);
  }

  [[nodiscard]] static list_link& link_of(wait_op& op) noexcept { return op.link_; }
  [[nodiscard]] static wait_op& of_link(list_link& link) noexcept
  {
    return static_cast<wait_op&>(reinterpret_cast<wheel_entry&>(link));
  }

protected:
  using ask_fn = void (*)(wait_op&, shard&, wait_request, time_point taken_up);

  /// What a derived class is.
  struct parts {
    bool timer = false;    ///< it is a timer_wait_op
    bool lazy = false;     ///< it is a lazy_wait_op
    bool foreign = false;  ///< its handler has an executor other than the wheel's
    bool shared = false;   ///< it is a deadline_wait, and its operation owns the memory
    bool large = false;    ///< its handler goes on in a second cache line
  };

  wait_op(ask_fn f, parts has) noexcept
    : ask_(f),
      of_timer_(has.timer),
      lazy_(has.lazy),
      foreign_(has.foreign),
      shared_(has.shared),
      large_(has.large)
  {}
  ~wait_op() = default;

private:
  friend class shard;
  friend class wheel_core;
  friend class deadline_wait;

  ask_fn ask_;

  // One word, down to the sequence. The state is lowest, where reading it takes no shift.
  wait_state state_ : 3 = wait_state::none;
  std::uint64_t of_timer_ : 1;
  std::uint64_t lazy_ : 1;
  std::uint64_t foreign_ : 1;
  std::uint64_t shared_ : 1;
  std::uint64_t large_ : 1;

protected:
  std::uint64_t linked_ : 1 = 0;  ///< it is linked, and tied to a slot

  // Of a deadline_wait.
  std::uint64_t keeps_core_ : 1 = 0;         ///< it owns a count of the core
  std::uint64_t cancelled_outside_ : 1 = 0;  ///< since the deadline came up last

private:
  std::uint64_t rests_ : 1 = 0;  ///< of a guard

  // Orders the starts of one thread across shards (see shard::file). Lasts for 1,400 years of
  // 100,000 starts a second.
  static constexpr unsigned sequence_bits = 52;
  static constexpr std::uint64_t last_sequence = (std::uint64_t{1} << sequence_bits) - 1;

  std::uint64_t sequence_ : sequence_bits = 0;
};
static_assert(sizeof(void*) != 8 || sizeof(wait_op) == 32);

using wait_list = intrusive_list<wait_op>;

/// A wait of a timer, in the timer's list until it ends.
class timer_wait_op : public wait_op, private list_link {
public:
  [[nodiscard]] static list_link& link_of(timer_wait_op& op) noexcept { return op; }
  [[nodiscard]] static timer_wait_op& of_link(list_link& link) noexcept
  {
    return static_cast<timer_wait_op&>(link);
  }

protected:
  timer_wait_op(ask_fn f, parts has) noexcept
    : wait_op(f, {.timer = true, .lazy = has.lazy, .foreign = has.foreign, .large = has.large}),
      list_link{}
  {}

private:
  friend class shard;

  /// Returns true if it is in its timer's list. A wait that leaves the list sets `next` to null.
  [[nodiscard]] bool is_listed() const noexcept { return next != nullptr; }
};

/// The waits of one timer, from the oldest on.
using timer_wait_list = intrusive_list<timer_wait_op>;

/// A wait whose handler has a cancellation slot.
template <class Op>
class linked : public Op {
public:
  /// Connects the wait to the link in the slot. Call this before it is filed.
  void set_link(wait_link& l) noexcept
  {
    link_ = &l;
    this->linked_ = true;
  }

protected:
  linked(typename Op::ask_fn f, typename Op::parts has) noexcept : Op(f, has) {}

private:
  friend class shard;

  wait_link* link_ = nullptr;
};

}  // namespace asio_wheel::detail
