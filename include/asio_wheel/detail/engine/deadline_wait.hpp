// L2 engine: the wait for an operation's deadline, which is part of the operation's state.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/base/thread_annotations.hpp>
#include <asio_wheel/detail/engine/cancel_link.hpp>
#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <cstdint>
#include <memory>

namespace asio_wheel::detail {

/// How an operation that its deadline cut short says so.
enum class deadline_report : std::uint8_t {
  aborted,    ///< as if cancelled: operation_aborted
  timed_out,  ///< asio::error::timed_out
  abandoned,  ///< the same, even if it has not ended
};

/// How an operation has ended, if the last holder of its state is to see to the rest.
enum class operation_end : std::uint8_t {
  none,       ///< not yet, or nobody has to see to it
  abandoned,  ///< it was destroyed
  completed,  ///< and has left its result behind
};

/// Throws std::logic_error: where to keep a deadline cannot be told.
[[noreturn]] ASIO_WHEEL_EXPORT void fail_without_wheel();

/// Where the deadline of an operation is filed once that has been initiated.
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

/// The same for one that is guarded.
struct guard_filing {
  guarded_by& by;

  [[nodiscard]] const asio::any_io_executor& executor() const noexcept
  {
    return wheel_executor(by.guard->core());
  }
};

/// Base of the state of an operation with a deadline.
///
/// The wait lives as any other (wait_op.hpp), but for two things. The memory is the operation's: an
/// operation that ends takes the wait out, wherever it is, and that is the end of it. And when the
/// wait begins, it does not end the operation, but cancels it, on the handler's executor: it
/// **fires**.
///
/// Whoever ends the operation calls its handler, at once. Only while somebody is inside the state,
/// its **holder**, the state has to stay: the function that initiates the operation, whoever is
/// passing on a cancellation from outside, and the deadline once the wheel has taken it up. An end
/// that finds one leaves the result behind, and the last holder to go sees to the handler.
///
/// If the handler has an executor other than the wheel's, the deadline goes there, and holds the
/// state on its way. Nobody waits for it.
///
/// An operation that was cancelled from outside before its deadline fires may have completed, with
/// the completion still queued. So its deadline goes once behind what is queued: what is told then
/// is the cancellation, if the operation has listened.
///
/// The deadline is filed when the operation has been initiated: there is something to cancel then.
/// The lock of the wait's shard guards all that is private here.
class ASIO_WHEEL_EXPORT deadline_wait : public guarded_wait {
public:
  /// What the operation proper listens to.
  [[nodiscard]] embedded_signal& signal() noexcept { return signal_; }

  /// The operation behind `link`, for a cancellation of `type` from outside, until its release();
  /// nullptr if it has ended.
  [[nodiscard]] static deadline_wait* hold(slot_link& link,
                                           asio::cancellation_type_t type) noexcept;

  /// Gives up a hold. Whether the operation has ended, and the state is now the caller's.
  [[nodiscard]] bool release() noexcept;

protected:
  /// What is left to the caller of leave().
  struct departure {
    bool is_last = true;          ///< the state is the caller's
    shard* to_tell_of = nullptr;  ///< wheel_core::tell_driver(), behind the operation's handler: by
                                  ///< then the next operation has often started
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
  [[nodiscard]] const asio::any_io_executor& native() const noexcept
  {
    return wheel_executor(core());
  }
  [[nodiscard]] asio::cancellation_type_t type() const noexcept { return type_; }

  /// Ties the state to the link in the slot of its handler.
  void tie(slot_link& link) noexcept
  {
    set_link(link);
    link.connect(*shard_, *this);
  }

  /// Files the deadline, unless the operation has ended, or there is none to file. False if the
  /// state is now the caller's, as with release().
  ///
  /// A deadline that is refused fires at once, as one: so does one there is no memory for.
  [[nodiscard, gnu::flatten]] bool start(tick when) noexcept;

  /// The same for one that is guarded.
  [[nodiscard, gnu::flatten]] bool start_guarded() noexcept;

  /// The guarded operation has ended: if the guard has not let go of it, and it has no holder, that
  /// leaves the state to the caller. Whether it does; otherwise leave() is to be called.
  [[nodiscard, gnu::flatten]] bool end_guarded() noexcept;

  /// The operation has ended: takes the deadline out. If that does not leave the state to the
  /// caller, the holders are to see to the rest, unless `how` is none.
  [[nodiscard, gnu::flatten]] departure leave(operation_end how) noexcept;

  /// leave() and tell_driver(), where no handler is to be called. Whether the state is the
  /// caller's.
  [[nodiscard]] bool leave_and_tell(operation_end how) noexcept;

  [[nodiscard]] operation_end end() const noexcept { return end_; }

  /// What becomes of a deadline that was taken up.
  enum class firing : std::uint8_t {
    now,    ///< it begins: the operation is to be cancelled
    later,  ///< it goes behind what is queued first
    off,    ///< there is nothing to cancel
  };

  /// Asks whether to go on with a deadline that is on its way.
  [[nodiscard]] firing look() noexcept;

  /// Decides on one that has arrived. `later` says that for once, and after an emission.
  [[nodiscard]] firing begin(time_point taken_up) noexcept;

  /// Returns true if the operation goes on. Requires a hold.
  [[nodiscard]] bool goes_on() noexcept;

  /// The handler is about to be called instead: nothing is passed on to the operation any more.
  /// Returns false if it has ended. Requires a hold.
  [[nodiscard]] bool leave_alone() noexcept;

  /// Leaves a deadline that was taken up to the next function that lets deadlines fire, and gives
  /// up its hold. Whether the operation has ended meanwhile, and the state is now the caller's.
  [[nodiscard]] bool requeue() noexcept;

  /// An executor has refused the deadline: the next pass tries again, and its hold is given up.
  /// False if the operation has ended, or the wheel is closed; then nothing is changed.
  [[nodiscard]] bool keep_refused() noexcept;

  /// An executor has refused the result, which is the caller's: the next pass tries again. False if
  /// the wheel is closed.
  [[nodiscard]] bool keep_finished() noexcept;

  /// An executor has dropped the deadline on its way.
  void drop() noexcept;

  /// What to report in place of operation_aborted: timed_out or rejected; `expired` if nothing.
  [[nodiscard]] wait_outcome replacement() const noexcept { return replacement_; }

  /// The same while there may be another holder, who decides.
  [[nodiscard]] wait_outcome ask_replacement() const noexcept;

  /// What a guarded operation is told in its place.
  [[nodiscard]] error_code guards_error(wait_outcome how) noexcept;

  /// Keeps the core while the state is being freed, if it has to be.
  [[nodiscard]] intrusive_ptr<wheel_core> take_core() noexcept
  {
    if (!keeps_core_) return nullptr;
    keeps_core_ = false;
    return {&core(), false};
  }

private:
  [[nodiscard]] bool has_ended() const noexcept { return end_ != operation_end::none; }

  /// Whether the deadline is over: its operation has ended, or is about to say so.
  [[nodiscard]] bool is_over() const noexcept;
  [[nodiscard]] bool end_first() noexcept;
  [[nodiscard, gnu::cold]] bool start_first(shard& sh) noexcept ASIO_WHEEL_RELEASE(sh);
  [[nodiscard, gnu::noinline, gnu::cold]] bool leave_unfiled(shard& sh, operation_end how) noexcept
    ASIO_WHEEL_REQUIRES(sh);
  [[gnu::noinline, gnu::cold]] static void tell_from_outside(shard& sh) noexcept
    ASIO_WHEEL_RELEASE(sh);

  const asio::cancellation_type_t type_;
  shard* const shard_;
  const deadline_report report_;
  wait_outcome replacement_ = wait_outcome::expired;
  operation_end end_ = operation_end::none;
  const std::uint8_t cause_ = 0;  ///< of a guarded operation: see guarded_by

  embedded_signal signal_;
};

}  // namespace asio_wheel::detail
