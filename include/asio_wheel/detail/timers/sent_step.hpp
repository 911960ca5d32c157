// L3 timers: what an operation with a deadline sends to the executor of its handler.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/executors.hpp>

#include <cstdint>
#include <utility>

namespace asio_wheel::detail {

/// A step of an operation that its handler's executor is to make.
enum class step : std::uint8_t {
  fire,     ///< the deadline has come
  abandon,  ///< the operation had time to end, and the handler waits no longer
  deliver,  ///< the operation has completed, and left its result behind
};

/// Where a step has arrived.
enum class arrival : std::uint8_t {
  here,      ///< at the handler's executor
  half_way,  ///< at another executor, which is to send it on
  nowhere,   ///< an executor has dropped it
};

/// A step on its way through an executor.
///
/// One type for all operations: what an executor does with such a function is compiled once, not
/// for each handler. A WebSocket on TLS has hundreds of handlers.
class sent_step {
public:
  /// Takes the step up again.
  using take_fn = void (*)(deadline_wait& op, const sent_step& s, arrival at);

  sent_step(deadline_wait& op, take_fn take, const submission& attempt, step s) noexcept
    : what(s),
      op_(&op),
      take_(take),
      attempt_(&attempt)
  {}
  sent_step(sent_step&& other) noexcept
    : what(other.what),
      taken_up(other.taken_up),
      begun(other.begun),
      op_(std::exchange(other.op_, nullptr)),
      take_(other.take_),
      attempt_(other.attempt_)
  {}
  sent_step& operator=(sent_step&&) = delete;
  ~sent_step()
  {
    if (op_ && !submission::give_back(attempt_, op_)) arrive(arrival::nowhere);
  }

  void operator()() { arrive(arrival::here); }

  void arrive(arrival at) { take_(*std::exchange(op_, nullptr), *this, at); }

  const step what;

  // Of a deadline.
  time_point taken_up{};
  std::uint64_t begun = 0;  ///< the wheel's handlers, when last at the executor

private:
  deadline_wait* op_;
  const take_fn take_;
  const submission* attempt_;
};

/// A sent_step on its way through another executor than the handler's.
struct relayed_step {
  sent_step step;

  void operator()() { step.arrive(arrival::half_way); }
};

}  // namespace asio_wheel::detail
