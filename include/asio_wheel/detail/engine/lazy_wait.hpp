// L2 engine: waits for a deadline that moves, and deadlines that share such a wait.
#pragma once

#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <cstdint>

namespace asio_wheel::detail {

/// A sign of life on a connection, as its owner sees it.
enum class peer_activity : std::uint8_t { none, received, sent };

/// A deadline that any thread may move to later at any time, by a store. Asked under the lock of
/// its waits' shard.
class moving_deadline {
public:
  /// When the waits expire, as of now.
  [[nodiscard]] virtual time_point deadline() const noexcept = 0;

  /// The deadline had passed by `now`, and a wait begins. Returns how it ends: expired, timed_out
  /// or repeats.
  [[nodiscard]] virtual wait_outcome expire(time_point /*now*/) noexcept
  {
    return wait_outcome::expired;
  }

  /// The deadline has moved to later, but there is no memory to file a wait again. Returns how it
  /// ends: exhausted or repeats.
  [[nodiscard]] virtual wait_outcome expire_early() noexcept { return wait_outcome::exhausted; }

  /// When the operations that it guards end, as of now.
  [[nodiscard]] virtual time_point guarded_until() const noexcept { return deadline(); }

  /// There was a sign of life at `now`, by the clock of the waits.
  virtual void note_activity(peer_activity, time_point /*now*/) noexcept {}

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
  lazy_wait_op(ask_fn f, parts has) noexcept
    : timer_wait_op(f, {.lazy = true, .foreign = has.foreign, .large = has.large})
  {}

private:
  friend class shard;

  moving_deadline* deadline_ = nullptr;
};

class operation_guard;

/// The deadline of an operation as a guard sees it.
class guarded_wait : public linked<wait_op> {
protected:
  explicit guarded_wait(ask_fn f, operation_guard* g = nullptr, time_point until = {}) noexcept
    : linked(f, {.shared = true}),
      guard_(g),
      until_(until)
  {}

  operation_guard* const guard_;  ///< counted until the operation ends; may be null
  const time_point until_;        ///< unused without a guard

  /// Threads and functions inside the operation's state: the initiation, the deadline once it has
  /// been taken up, and each emission from outside.
  std::uint32_t holders_ = 1;

private:
  friend class operation_guard;
  friend class shard;
};

}  // namespace asio_wheel::detail
