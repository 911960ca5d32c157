// L2 engine: the life of a wait, from the start to the call of its handler.
#pragma once

#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/intrusive_list.hpp>
#include <asio_wheel/detail/wheel/wheel_entry.hpp>

#include <atomic>
#include <cstdint>

namespace asio_wheel::detail {

// One life for every wait: of a timer, of the wheel itself, of a watchdog, of an operation's
// deadline.
//
//      file           expire          begin
//     ------> filed ---------> due ---------> begun: the handler is called with success
//               |               |
//               +---- cancel ---+---> cancelled ---> the handler is called with operation_aborted
//
//     destroy: from any of these, the handler is destroyed uncalled
//
//   file     puts the wait on the wheel of its shard (core.hpp). A refused one is never filed: it
//   is
//            `rejected`, and its handler is told so.
//   expire   the wheel has come to the wait's tick. Nothing is decided by that. The wait stays
//            where others can reach it: in the wheel's queue of due entries, and, if its handler
//            has an executor of its own, on the way there. What that executor refuses stays due,
//            and is sent again by the next pass.
//   cancel   wins until the handler begins, wherever the wait is: it leaves the wheel for the list
//            of the ended, or, on its way to an executor, takes note of what to say there.
//   begin    decides how the wait ends, on the handler's executor, right before the call.
//   destroy  the context goes away, or an executor drops the wait on its way.
//
// A deadline of an operation may be in two states more. It is `guarded` before it is due, if a
// guard has filed one wait for all of its operations. It is `finished` when its operation has ended
// and the handler's executor has refused the result: then the deadline is over, and stands for the
// result in a list of its shard until the next pass sends that again.
//
// Who decides: every transition is made by a thread that holds the lock of the wait's shard, which
// is the one shard that it belongs to from start to end. The lock is never held while a handler is
// called, moved or destroyed, so a wait is first made unreachable (no list, no cancellation slot,
// no cell points to it) and then called or destroyed by the thread that made it so.
//
// Two ways to be cancelled take no look at the wait itself. A timer's cancel is put off
// (shard.hpp), and carried out before anybody looks at a wait of that shard. cancel_all() is a
// sequence: every wait that was started before it is cancelled, and finds out when it is taken up.
//
// A lazy wait, whose deadline moves (lazy_state.hpp), is filed again instead of expiring, and once
// more instead of beginning, if its deadline is no longer the one that it was filed under.

class shard;
class operation_guard;
class wait_op;

/// How a wait ends.
enum class wait_outcome : std::uint8_t {
  undecided,  ///< not yet: the handler's own executor will say, in wheel_core::begin()
  expired,    ///< the handler is called with success
  timed_out,  ///< the handler is called with timed_out; of lazy waits only
  cancelled,  ///< the handler is called with operation_aborted
  rejected,   ///< the handler is called with too_many_pending
  destroyed,  ///< the handler is destroyed uncalled
  described,  ///< it does not end at all: its shard is told the type of its handler
  released,   ///< it rested, and has been erased: gives up what counts for it
};

/// Where a wait is. As wide as the word that it is part of.
enum class wait_state : std::uint64_t {
  none,       ///< nowhere: not started yet, or begun
  filed,      ///< in the wheel, due or not
  sent,       ///< on its way to the handler's own executor
  requeued,   ///< due, and in a list of its shard: of what is to be sent, or to be sent again
  cancelled,  ///< in the list of the ended, or on that way
  rejected,   ///< the same
  guarded,    ///< of an operation's deadline: in the list of its guard (operation_guard.hpp)
  finished,   ///< of an operation that has ended: in a list, for its result to be sent again
};

/// What a wait leaves in its handler's cancellation slot: the way back to the wait, for as long as
/// it can be cancelled.
///
/// The wait and its link point to each other, and either may go first. Both pointers are guarded by
/// the wait's shard; `shard_` alone may be read without, to see whether there is a wait left.
class wait_link {
public:
  wait_link() = default;
  wait_link(const wait_link&) = delete;
  wait_link& operator=(const wait_link&) = delete;

  /// Ties the link to a wait of that shard.
  void connect(shard& sh, wait_op& op) noexcept
  {
    op_ = &op;
    shard_.store(&sh, std::memory_order_release);
  }
  void disconnect() noexcept
  {
    op_ = nullptr;
    shard_.store(nullptr, std::memory_order_release);
  }

  /// The wait's shard, without a lock; null if there is no wait any more.
  [[nodiscard]] shard* at() const noexcept { return shard_.load(std::memory_order_acquire); }

  /// The wait; null if there is none.
  [[nodiscard]] wait_op* wait() const noexcept { return op_; }

protected:
  ~wait_link() = default;

private:
  std::atomic<shard*> shard_{nullptr};
  wait_op* op_ = nullptr;
};

/// Base of all waits: thirty-two bytes, with the handler behind them in the same memory.
class wait_op : public wheel_entry {
public:
  /// Ends the wait: frees the memory and then, unless the outcome is `destroyed`, calls the
  /// handler. If the outcome is `undecided`, sends the wait to the handler's executor instead.
  /// `taken_up` is when the wait left the wheel, for the statistics. If it is `described`, calls
  /// shard::describe() and leaves the wait as it is; that requires the lock.
  void end(shard& sh, wait_outcome outcome, time_point taken_up = {})
  {
    end_(*this, sh, outcome, taken_up);
  }

  [[nodiscard]] static list_link& link_of(wait_op& op) noexcept { return op.link_; }
  [[nodiscard]] static wait_op& of_link(list_link& link) noexcept
  {
    return static_cast<wait_op&>(reinterpret_cast<wheel_entry&>(link));
  }

protected:
  using end_fn = void (*)(wait_op&, shard&, wait_outcome, time_point taken_up);

  /// What a class derived from this one has.
  struct parts {
    bool timer = false;    ///< it is a timer_wait_op
    bool lazy = false;     ///< it is a lazy_wait_op
    bool foreign = false;  ///< its handler has an executor other than the wheel's
    bool shared = false;   ///< it is a deadline_wait, and its operation owns the memory
    bool large = false;    ///< its handler goes on in a second cache line
  };

  wait_op(end_fn f, parts has) noexcept
    : end_(f),
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

  end_fn end_;

  // One word, to the sequence. The state is lowest, where a look at it takes no shift.
  wait_state state_ : 3 = wait_state::none;
  std::uint64_t of_timer_ : 1;
  std::uint64_t lazy_ : 1;
  std::uint64_t foreign_ : 1;
  std::uint64_t shared_ : 1;
  std::uint64_t large_ : 1;

protected:
  std::uint64_t linked_ : 1 = 0;  ///< it is linked, and tied to a slot

  // Of a deadline_wait.
  std::uint64_t keeps_core_ : 1 = 0;         ///< a count of the core is its own
  std::uint64_t cancelled_outside_ : 1 = 0;  ///< its operation was, since the deadline came up last

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

/// A wait that was started on a timer, and is in that timer's list until it ends.
class timer_wait_op : public wait_op, private list_link {
public:
  [[nodiscard]] static list_link& link_of(timer_wait_op& op) noexcept { return op; }
  [[nodiscard]] static timer_wait_op& of_link(list_link& link) noexcept
  {
    return static_cast<timer_wait_op&>(link);
  }

protected:
  timer_wait_op(end_fn f, parts has) noexcept
    : wait_op(f, {.timer = true, .lazy = has.lazy, .foreign = has.foreign, .large = has.large}),
      list_link{}
  {}

private:
  friend class shard;

  /// Whether it is in its timer's list. To leave the list is to say so here.
  [[nodiscard]] bool is_listed() const noexcept { return next != nullptr; }
};

/// The waits of one timer, from the oldest on.
using timer_wait_list = intrusive_list<timer_wait_op>;

/// A deadline that anybody may put off at any time, by a store. Asked with the lock of its waits'
/// shard held.
class moving_deadline {
public:
  /// When the waits expire, as things stand.
  [[nodiscard]] virtual time_point deadline() const noexcept = 0;

  /// The deadline has passed by `now`, and a wait begins: says how it ends, with expired or
  /// timed_out.
  [[nodiscard]] virtual wait_outcome expire(time_point now) noexcept = 0;

  /// When operations end that are guarded by it, as things stand.
  [[nodiscard]] virtual time_point guarded_until() const noexcept { return deadline(); }

  /// A wait was filed again, for this deadline.
  virtual void set_filed_for(time_point) noexcept {}

  /// A wait that rested has been erased.
  virtual void set_unfiled() noexcept {}

protected:
  ~moving_deadline() = default;
};

/// A wait for a deadline that moves.
class lazy_wait_op : public timer_wait_op {
public:
  void set_deadline(moving_deadline& d) noexcept { deadline_ = &d; }

protected:
  lazy_wait_op(end_fn f, parts has) noexcept
    : timer_wait_op(f, {.lazy = true, .foreign = has.foreign, .large = has.large})
  {}

private:
  friend class shard;

  moving_deadline* deadline_ = nullptr;
};

/// A wait whose handler has a cancellation slot.
template <class Op>
class linked : public Op {
public:
  /// Connects the wait to the link in the slot. To be called before it is filed.
  void set_link(wait_link& l) noexcept
  {
    link_ = &l;
    this->linked_ = true;
  }

protected:
  linked(typename Op::end_fn f, typename Op::parts has) noexcept : Op(f, has) {}

private:
  friend class shard;

  wait_link* link_ = nullptr;
};

/// The deadline of an operation as a guard sees it.
class guarded_wait : public linked<wait_op> {
protected:
  explicit guarded_wait(end_fn f, operation_guard* g = nullptr, time_point until = {}) noexcept
    : linked(f, {.shared = true}),
      guard_(g),
      until_(until)
  {}

  operation_guard* const guard_;  ///< counted until the operation ends; null if none
  const time_point until_;        ///< of no meaning without a guard

  /// Threads and functions inside the operation's state: the initiation, the deadline once it has
  /// been taken up, and each emission from outside.
  std::uint32_t holders_ = 1;

private:
  friend class operation_guard;
  friend class shard;
};

}  // namespace asio_wheel::detail
