// L2 service: one wait, with its handler's type erased.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/ground/intrusive_queue.hpp>
#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/wheel/chunk.hpp>

#include <boost/asio/cancellation_type.hpp>

#include <atomic>
#include <cstdint>

namespace asio_wheel {

class shard;
class wait_op;
class waits_of_timer;
class lazy_waits;

/// How a wait ends.
enum class wait_outcome : std::uint8_t {
  expired,    ///< the handler is called with success
  timed_out,  ///< the handler is called with timed_out; of lazy waits only (lazy_waits.hpp)
  cancelled,  ///< the handler is called with operation_aborted
  rejected,   ///< the handler is called with too_many_pending
  destroyed,  ///< the handler is destroyed uncalled: the context is going away
};

/// What a wait leaves in its handler's cancellation slot: the way back to the wait, for as long
/// as it can be cancelled.
///
/// The wait and its link point to each other, and either may go first. Both pointers are guarded
/// by the wait's shard; `shard_` alone may be read without, to see whether there is a wait left.
class ASIO_WHEEL_EXPORT cancel_link {
public:
  cancel_link() = default;
  cancel_link(const cancel_link&) = delete;
  cancel_link& operator=(const cancel_link&) = delete;
  ~cancel_link();

  /// Cancels the wait, if it is still pending. A wait has no partial effects to keep, so every
  /// type of cancellation that is asked for is granted.
  void operator()(asio::cancellation_type_t type);

private:
  friend class shard;

  std::atomic<shard*> shard_{nullptr};
  wait_op* op_ = nullptr;
};

/// Base of all waits: thirty-two bytes, with the handler behind them in the same memory.
///
/// A wait belongs to a shard from start to end and is owned by it: filed in its wheel, or in its
/// queue of ready waits. It is then completed or destroyed, once.
class wait_op : public wheel_entry {
public:
  /// Frees the memory and then, unless the outcome is `destroyed`, calls the handler.
  void complete(wait_outcome outcome) { complete_(*this, outcome); }

  [[nodiscard]] wait_outcome outcome() const noexcept
  {
    return static_cast<wait_outcome>(outcome_);
  }

protected:
  using complete_fn = void (*)(wait_op&, wait_outcome);

  /// What a class derived from this one has.
  struct parts {
    bool timer = false;  ///< it is a timer_wait_op
    bool link = false;   ///< it is a linked<wait_op> or a linked<timer_wait_op>
  };

  wait_op(complete_fn f, parts has) noexcept : complete_(f), of_timer_(has.timer), linked_(has.link)
  {}
  ~wait_op() = default;

private:
  friend class shard;
  friend class cancel_link;
  friend class lazy_waits;

  void set_stamp(std::uint64_t stamp) noexcept { stamp_ = stamp & ((std::uint64_t{1} << 48) - 1); }

  complete_fn complete_;

  // One word. The stamp orders the starts of one thread across shards (see shard::file); it lasts
  // for 89 years of 100,000 starts a second.
  std::uint64_t stamp_ : 48 = 0;
  std::uint64_t outcome_ : 8 = 0;
  std::uint64_t of_timer_ : 4;
  std::uint64_t linked_ : 2;
  std::uint64_t lazy_ : 2 = 0;  ///< it is in a list of lazy_waits
};
static_assert(sizeof(void*) != 8 || sizeof(wait_op) == 32);

/// A wait that was started on a timer, and is in that timer's list until it ends.
///
/// The list is linked singly; its last wait points back to the timer, with the lowest bit set.
class timer_wait_op : public wait_op {
protected:
  timer_wait_op(complete_fn f, parts has) noexcept : wait_op(f, {.timer = true, .link = has.link})
  {}

private:
  friend class waits_of_timer;

  std::uintptr_t next_ = 0;  ///< 0: in no list
};

/// A wait whose handler has a cancellation slot.
template <class Op>
class linked : public Op {
public:
  /// Connects the wait to the link in the slot. To be called before it is started.
  void set_link(cancel_link& l) noexcept { link_ = &l; }

protected:
  explicit linked(typename Op::complete_fn f) noexcept : Op(f, {.link = true}) {}

private:
  friend class shard;

  cancel_link* link_ = nullptr;
};

/// A wait whose handler has none.
template <class Op>
class unlinked : public Op {
protected:
  explicit unlinked(typename Op::complete_fn f) noexcept : Op(f, {}) {}
};

using wait_queue = intrusive_queue<wheel_entry, wheel_entry::queue_link>;

}  // namespace asio_wheel
