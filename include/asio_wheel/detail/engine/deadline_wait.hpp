// L2 engine: the wait for an operation's deadline, which is part of the operation's state.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace asio_wheel::detail {

/// How an operation reports that its deadline has ended it.
enum class deadline_report : std::uint8_t {
  aborted,    ///< as if cancelled: operation_aborted
  timed_out,  ///< asio::error::timed_out
  abandoned,  ///< asio::error::timed_out, even if it has not ended
};

/// How an operation has ended, if the last holder of its state has to do the rest.
enum class operation_end : std::uint8_t {
  none,       ///< not yet, or there is nothing to do
  abandoned,  ///< it was destroyed
  completed,  ///< it has left its result behind
};

/// What the handler's executor is to do next for an operation.
enum class step_kind : std::uint8_t {
  fire,     ///< the deadline has come
  abandon,  ///< the operation had time to end, and the handler waits no longer
  deliver,  ///< the operation has completed, and left its result behind
};

/// A step, with what a deadline that is to fire needs on its way.
struct step {
  step_kind kind;
  time_point taken_up{};    ///< when it left the wheel, for the statistics
  std::uint64_t begun = 0;  ///< how many handlers had begun, if it is not in deadlines_under_way
};

/// Throws std::logic_error: no wheel for a deadline can be found.
[[noreturn]] ASIO_WHEEL_EXPORT void fail_without_wheel();

/// Where to file the deadline of an operation, once it has been initiated.
struct ASIO_WHEEL_EXPORT deadline_filing {
  [[gnu::flatten]] deadline_filing(wheel_core& c, duration delay) noexcept;
  [[gnu::flatten]] deadline_filing(wheel_core& c, time_point deadline) noexcept;

  shard& at;
  const tick when;

  [[nodiscard]] const asio::any_io_executor& executor() const noexcept
  {
    return wheel_executor(core_of(at));
  }
};

/// Where to file the deadline of a guarded operation.
struct guard_filing {
  guarded_by& by;

  [[nodiscard]] const asio::any_io_executor& executor() const noexcept
  {
    return wheel_executor(by.guard->core());
  }
};

/// Base of the state of an operation with a deadline.
///
/// The wait lives as any other (wait_op.hpp), with two exceptions. The operation owns the memory:
/// when the operation ends, it erases the wait, wherever the wait is. And when the wait begins, it
/// does not end the operation, but cancels it, on the handler's executor: it **fires**.
///
/// The end of the operation calls its handler at once, unless the state has **holders**. Holders
/// are the initiation, each cancellation on its way from outside, and the deadline once the wheel
/// has taken it up. If there is a holder, the end leaves the result behind, and the last holder to
/// go calls the handler.
///
/// If the handler's executor is not the wheel's, the deadline goes to the handler's executor, and
/// holds the state on its way. Nobody waits for it.
///
/// If an operation was cancelled from outside before its deadline fires, its completion may still
/// be queued. So the deadline goes once behind what is queued: the cancellation is reported then,
/// if the operation has listened.
///
/// The deadline is filed after the operation was initiated: there is nothing to cancel before. The
/// lock of the wait's shard guards the private members, unless they say otherwise.
class ASIO_WHEEL_EXPORT deadline_wait : public guarded_wait {
public:
  /// What the operation proper listens to.
  [[nodiscard]] embedded_signal& signal() noexcept { return signal_; }

  /// Holds the operation behind `link`, for a cancellation of `type` from outside, until release().
  /// Returns nullptr if the operation has ended.
  [[nodiscard]] static deadline_wait* hold(wait_link& link,
                                           asio::cancellation_type_t type) noexcept;

  /// Gives up a hold. Returns true if the operation has ended and the state is now the caller's.
  [[nodiscard]] bool release() noexcept;

protected:
  /// What is left to the caller of leave().
  struct departure {
    bool is_last = true;          ///< the state is the caller's
    shard* to_tell_of = nullptr;  ///< for tell_driver(), behind the operation's handler:
                                  ///< often the next operation has started by then
  };

  deadline_wait(ask_fn f, const deadline_filing& where, asio::cancellation_type_t type,
                deadline_report report) noexcept
    : guarded_wait(f),
      type_(type),
      shard_(&where.at),
      report_(report)
  {}
  deadline_wait(ask_fn f, const guard_filing& where, asio::cancellation_type_t type,
                deadline_report report) noexcept
    : guarded_wait(f, where.by.guard.get(), where.by.until),
      type_(type),
      shard_(&guard_->at()),
      report_(report),
      cause_(where.by.cause)
  {}
  ~deadline_wait() = default;

  [[nodiscard]] wheel_core& core() const noexcept { return core_of(*shard_); }

  // The wheel's executor and context. Every operation asks for both, so each is one call.
  [[nodiscard]] const asio::any_io_executor& context_executor() const noexcept;
  [[nodiscard]] asio::execution_context& context() const noexcept;

  [[nodiscard]] asio::cancellation_type_t type() const noexcept { return type_; }

  /// Ties the state to the link in the slot of its handler.
  void tie(wait_link& link) noexcept
  {
    set_link(link);
    link.connect(*shard_, *this);
  }

  /// Files the deadline, unless the operation has ended, or there is nothing to file. Returns false
  /// if the state is now the caller's.
  ///
  /// A refused deadline fires at once, as refused. So does a deadline without memory.
  [[nodiscard, gnu::flatten]] bool start(tick when) noexcept;

  /// As start(), for a guarded operation.
  [[nodiscard]] bool start_guarded() noexcept;

  /// The guarded operation has ended. Returns true if it is still guarded and has no holder: the
  /// state is the caller's then. Otherwise call leave().
  [[nodiscard]] bool end_guarded() noexcept;

  /// The operation has ended: erases the deadline. If the state has holders, the last holder does
  /// the rest, unless `how` is none.
  [[nodiscard, gnu::flatten]] departure leave(operation_end how) noexcept;

  /// leave() and tell_driver(), without a handler to call. Returns true if the state is the
  /// caller's.
  [[nodiscard]] bool leave_and_tell(operation_end how) noexcept;

  [[nodiscard]] operation_end end() const noexcept { return end_; }

  /// What happens to a deadline that was taken up.
  enum class firing : std::uint8_t {
    now,    ///< it begins: the operation is to be cancelled
    later,  ///< it goes behind what is queued first
    kept,   ///< the wheel has it again, and its hold
    off,    ///< there is nothing to cancel
  };

  /// Returns `off` if a deadline on its way has nothing to cancel any more, else `later`.
  [[nodiscard]] firing check() noexcept;

  /// Decides on a deadline that is where it may fire. Says `later` once after each cancellation
  /// from outside.
  [[nodiscard]] firing begin(time_point taken_up) noexcept;

  /// The first step of a deadline to another executor than the wheel's.
  ///
  /// @param strand  the executor, if it may be a strand of Asio's
  [[nodiscard]] step first_step(time_point taken_up, asio::any_io_executor strand) noexcept;

  /// Decides on a deadline that has arrived at such an executor: begin(), or another **round**,
  /// from the executor through its context, behind what is queued, and back.
  ///
  /// A handler that has destroyed an I/O object may have run on the executor before the deadline,
  /// while the object's aborted operation has yet to get there. Any handler of the wheel may be the
  /// one; with several threads, only a handler on the same strand (deadlines_under_way). One of the
  /// threads may have taken that operation's completion from the context, and have lost its
  /// processor. So what it does depends on the handlers that have begun meanwhile:
  ///
  /// | On its arrival                                         | the deadline goes              |
  /// | ------------------------------------------------------ | ------------------------------ |
  /// | the operation has ended                                | nowhere: it is off             |
  /// | no handler has begun on this round                     | to begin()                     |
  /// | - but before, and there are several threads            | to the next tick, 4x to 8x     |
  /// | handlers have begun, or it arrives for the first time  | round                          |
  /// | - each eighth time, if handlers are about to be called | to the next tick, at most 512x |
  /// | - after 256 rounds                                     | to begin()                     |
  ///
  /// Before: on another round, or a wait was sent to another executor within four ticks before the
  /// deadline. It begins to count rounds again after a tick. It waits for no tick that is long, or
  /// of a clock that stands still, or if the executor is of another context than the wheel's:
  /// nobody may be left to make that tick.
  [[nodiscard]] firing decide(step& deadline, bool is_of_other_context) noexcept;

  /// Returns true if the operation still runs. Requires a hold.
  [[nodiscard]] bool goes_on() noexcept;

  // An operation may complete in one thread while it is abandoned in another. The first decides
  // what is reported and counted.

  /// The handler is about to be called instead: passes nothing on to the operation any more.
  /// Returns false if the operation has ended or completed. Requires a hold.
  [[nodiscard]] bool leave_alone() noexcept;

  /// Returns true once leave_alone() has. Requires that nobody else holds the state.
  [[nodiscard]] bool is_left_alone() const noexcept { return told_ == told::instead; }

  /// The operation has completed while somebody may hold the state. Returns what to report, as
  /// replacement(); nothing if the operation was left alone before.
  [[nodiscard]] std::optional<wait_outcome> take_completion() noexcept;

  /// Leaves a deadline that was taken up to the next firing, and gives up its hold. Returns true if
  /// the operation has ended meanwhile and the state is now the caller's.
  [[nodiscard]] bool requeue() noexcept;

  /// An executor has refused a step: gives up its hold, and the next pass tries again. Returns
  /// false, with nothing changed, if the wheel is closed, or if nothing is left to do but to
  /// release the hold. A result has no hold: it requires that the state is the caller's.
  [[nodiscard]] bool keep(step_kind refused) noexcept;

  /// An executor has dropped the deadline on its way.
  void drop_deadline() noexcept;

  /// What to report in place of operation_aborted: timed_out or rejected, or `expired` for nothing.
  [[nodiscard]] wait_outcome replacement() const noexcept { return replacement_; }

  /// What a guarded operation reports in place of operation_aborted.
  [[nodiscard]] error_code guards_error(wait_outcome how) noexcept;

  /// Takes over the count of the core, if the state has one, to keep the core while the state is
  /// freed.
  [[nodiscard]] intrusive_ptr<wheel_core> take_core() noexcept
  {
    if (!keeps_core_) return nullptr;
    keeps_core_ = false;
    return {&core(), false};
  }

private:
  [[nodiscard]] bool has_ended() const noexcept { return end_ != operation_end::none; }

  /// Returns true if the deadline is over: its operation has ended, or the wait is unreachable.
  [[nodiscard]] bool is_over() const noexcept;
  [[nodiscard]] bool has_any_begun(step& deadline) const noexcept;
  [[nodiscard]] bool wait_for_next_tick(bool is_clear) noexcept;
  [[nodiscard]] bool end_first() noexcept;
  [[nodiscard, gnu::noinline, gnu::cold]] bool start_first(shard& sh) noexcept
    ASIO_WHEEL_RELEASE(sh);
  [[nodiscard, gnu::noinline, gnu::cold]] bool leave_unfiled(shard& sh, operation_end how) noexcept
    ASIO_WHEEL_REQUIRES(sh);
  [[gnu::noinline, gnu::cold]] static void tell_from_outside(shard& sh) noexcept
    ASIO_WHEEL_RELEASE(sh);

  const asio::cancellation_type_t type_;
  shard* const shard_;
  const deadline_report report_;
  wait_outcome replacement_ = wait_outcome::expired;
  operation_end end_ = operation_end::none;
  /// Who has decided what the handler is told: the operation, or leave_alone() instead.
  enum class told : std::uint8_t { nothing, of_completion, instead } told_ = told::nothing;
  const std::uint8_t cause_ = 0;  ///< of a guarded operation: see guarded_by

  // Only for the thread that has the deadline.
  std::uint8_t place_ = 0;        ///< in deadlines_under_way
  std::uint8_t doubt_ = 0;        ///< ticks to wait for, as a handler may have destroyed the object
  bool has_met_handler_ = false;  ///< that began on its way
  std::uint16_t rounds_ = 0;      ///< since the latest tick
  std::uint16_t ticks_ = 0;       ///< that it has waited for

  embedded_signal signal_;
};

/// Where a step has arrived.
enum class arrival : std::uint8_t {
  here,      ///< at the handler's executor
  half_way,  ///< at another executor, which is to send it on
  nowhere,   ///< an executor has dropped it
};

/// A step on its way through an executor, with a hold on the state, or with the state itself.
///
/// One type for all operations: what an executor does with such a function is compiled once, not
/// for each handler. A WebSocket on TLS has hundreds of handlers.
class sent_step {
public:
  using take_fn = void (*)(deadline_wait& op, const step& s, arrival at);

  /// @param take  takes the step up where it has arrived
  sent_step(deadline_wait& op, take_fn take, const submission& attempt, const step& s) noexcept
    : step_(s),
      op_(&op),
      take_(take),
      attempt_(&attempt)
  {}
  sent_step(sent_step&& other) noexcept
    : step_(other.step_),
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

  void arrive(arrival at) { take_(*std::exchange(op_, nullptr), step_, at); }

private:
  const step step_;
  deadline_wait* op_;
  const take_fn take_;
  const submission* attempt_;
};

/// A sent_step on its way through another executor than the handler's.
struct relayed_step {
  sent_step sent;

  void operator()() { sent.arrive(arrival::half_way); }
};

}  // namespace asio_wheel::detail
