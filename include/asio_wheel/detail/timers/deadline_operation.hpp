// L3 timers: an operation with a deadline, from its initiation to the firing of the deadline.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>
#include <asio_wheel/detail/timers/abandonable_handler.hpp>
#include <asio_wheel/detail/timers/ending_operation.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// The state of one operation with a deadline: the user's handler, the deadline and what the
/// operation proper listens to, in one allocation.
///
/// `Fallback` is the executor that the handler is offered. It is no_executor if the handler has no
/// executor and may run anywhere, or if it has an executor whatever it is offered. `Where` is a
/// deadline_filing or a guard_filing; it has `terms` if the operation may have a policy, and
/// `feeds` if it is of a stream.
template <class Handler, class Fallback, class Where, class... Signatures>
class deadline_operation final
  : public ending_operation<deadline_operation<Handler, Fallback, Where, Signatures...>, Handler,
                            Fallback, Where, Signatures...> {
  using base = ending_operation<deadline_operation, Handler, Fallback, Where, Signatures...>;

public:
  using base::runs_anywhere;
  using typename base::executor_type;

  /// Takes over the handler. Throws what its allocator, its move and its slot throw.
  /// `is_at_home` is true if the handler's executor is known to be of the wheel's context.
  template <class H, class F>
  static deadline_operation& make(H&& handler, F&& fallback, Where& where,
                                  asio::cancellation_type_t type, deadline_report report,
                                  bool is_at_home)
  {
    auto* const op = make_op<deadline_operation>(std::forward<H>(handler),
                                                 std::forward<F>(fallback), where, type, report)
                       .release();
    try {
      if constexpr (!runs_anywhere)
        if (!is_at_home) op->find_gate();
      if constexpr (has_slot<Handler>) op->listen();
    } catch (...) {
      op->destroy();
      throw;
    }
    // The state takes over the count of the guard.
    if constexpr (base::is_guarded) static_cast<void>(where.by.guard.release());
    return *op;
  }

  /// For make().
  template <class H, class F>
  deadline_operation(H&& handler, F&& fallback, const Where& where, asio::cancellation_type_t type,
                     deadline_report report)
    : base(&deadline_operation::do_ask, std::forward<H>(handler), std::forward<F>(fallback), where,
           type, report)
  {}

  /// Lasts while the operation is being initiated. Its end files the deadline, also after an
  /// exception, unless the operation has ended.
  struct initiation {
    deadline_operation& op;
    const Where& where;

    ~initiation() noexcept(false)
    {
      bool goes_on;
      if constexpr (base::is_guarded)
        goes_on = op.start_guarded();
      else
        goes_on = op.start(where.when);
      if (!goes_on) op.finish_elsewhere();
    }
  };

private:
  friend base;
  using base::begin, base::check, base::core, base::deliver, base::destroy, base::drop,
    base::executor, base::finish_elsewhere, base::first_step, base::goes_on, base::handler_,
    base::has_other_context, base::has_other_executor, base::keep, base::leave_alone,
    base::make_sent, base::pass_on, base::post_there, base::post_to_context,
    base::release_elsewhere, base::release_here, base::replacement, base::replacement_error,
    base::requeue, base::send, base::submit_there;
  using typename base::firing;

  /// Passes on a cancellation from the slot of the user's handler.
  class forward : public wait_link {
  public:
    void operator()(asio::cancellation_type_t type)
    {
      if (deadline_wait* const op = deadline_wait::hold(*this, type))
        static_cast<deadline_operation&>(*op).emit(type);
    }
  };

  void listen()
  {
    auto slot = asio::get_associated_cancellation_slot(handler_, no_slot{});
    if (slot.is_connected()) this->tie(slot.template emplace<forward>());
  }

  // The deadline's side.

  /// The deadline has come, or was cancelled or refused; or the kept result of the operation was.
  static void do_ask(wait_op& base, shard& at, wait_request request,
                     [[maybe_unused]] time_point taken_up)
  {
    if (request == wait_request::describe()) return describe_handler<Handler>(at);
    auto& self = static_cast<deadline_operation&>(base);
    if (request == wait_request::destroy()) return self.destroy();  // with the result
    if constexpr (is_abandonable<Handler>)
      if (self.handler_.is_late) return self.send({step_kind::abandon});
    if constexpr (!runs_anywhere)
      if (self.has_other_executor() && self.check() != firing::off)
        return self.send(self.first_step(taken_up));
    switch (self.begin(taken_up)) {
      case firing::now: return self.fire();
      case firing::later:
        if (self.requeue()) self.finish_elsewhere();
        return;
      case firing::kept: return;
      case firing::off: return self.release_elsewhere();
    }
  }

  /// A step has arrived, with the hold on the state, or the state, that it was sent with.
  static void take(deadline_wait& op, const step& s, arrival at)
  {
    auto& self = static_cast<deadline_operation&>(op);
    if (at == arrival::nowhere) return self.drop(s.kind);
    if constexpr (!runs_anywhere)
      if (at == arrival::half_way) return self.send(s);
    switch (s.kind) {
      case step_kind::fire:
        if constexpr (!runs_anywhere) self.arrive(s);
        return;
      case step_kind::abandon:
        if constexpr (is_abandonable<Handler>) self.abandon_unless_ended();
        return;
      case step_kind::deliver: return self.deliver();
    }
  }

  /// The deadline is at the handler's executor, which is not the wheel's.
  void arrive(step deadline)
  {
    switch (deadline_wait::arrive(deadline, has_other_context())) {
      case firing::now: return fire();
      case firing::later: return go_round(deadline);
      case firing::kept: return;
      case firing::off: return release_here();
    }
  }

  /// Sends the deadline through the context of the handler's executor, and back.
  void go_round(const step& deadline)
  {
    pass_on(step_kind::fire, [&](const submission& attempt) {
      relayed_step r{make_sent(attempt, deadline)};
      static_cast<void>(post_to_context(r));
    });
  }

  /// The deadline begins: cancels the operation, on the handler's executor.
  void fire()
  {
    if constexpr (is_abandonable<Handler>) {
      ask_to_stop(this->type());
      handler_.is_late = true;
      if (!give_time()) abandon_here();
    } else {
      emit(this->type());
    }
  }

  /// Cancels the operation, and gives up a hold. An operation that completes meanwhile queues its
  /// handler, as if nothing had held it.
  void emit(asio::cancellation_type_t type)
  {
    ask_to_stop(type);
    release_elsewhere();
  }

  void ask_to_stop(asio::cancellation_type_t type)
  {
    try {
      this->signal().emit(type);
    } catch (...) {
      release_elsewhere();
      throw;
    }
  }

  // For an operation that may be abandoned.

  /// Lets what is queued run first: it may end the operation. Requires a hold. Returns false if the
  /// executor refuses.
  [[nodiscard]] bool give_time()
  {
    const submission_result r = submit_there([&](const submission& attempt) {
      relayed_step a{make_sent(attempt, {step_kind::abandon})};
      static_cast<void>(post_there(a));
    });
    if (r == submission_result::dropped) drop(step_kind::abandon);
    return r != submission_result::refused;
  }

  void abandon_unless_ended()
  {
    constexpr int most_turns = 8;
    if (++handler_.turns < most_turns && goes_on() && give_time()) return;
    abandon_here();
  }

  /// Calls the handler, and leaves the state to the operation, on the handler's executor. If there
  /// is no memory for the results, the next pass tries again.
  void abandon_here()
  {
    results_by_default<Signatures...> results;
    static_assert(std::is_default_constructible_v<typename decltype(results)::value_type>,
                  "abandon_after and abandon_at need an operation whose results can be made by "
                  "default");
    try {
      results.emplace();
    } catch (...) {
      if (keep(step_kind::abandon)) return;
      release_elsewhere();
      throw;
    }
    if (!leave_alone()) return release_here();
    const error_code instead = replacement_error(replacement(), true);
    auto handler = take_abandoned();
    release_here();
    call_with_error(std::move(handler), *std::move(results),
                    instead ? instead : error_code(asio::error::operation_aborted));
  }

  [[nodiscard]] auto take_abandoned()
  {
    try {
      return handler_.abandon(core());
    } catch (...) {
      release_elsewhere();
      throw;
    }
  }
};

/// What the operation proper completes: the owner of the state. It has the user's handler's
/// executor and allocator, and a cancellation slot of its own.
template <class Operation>
class deadline_handler {
public:
  using wrapped_handler = typename Operation::handler_type;
  using cancellation_slot_type = embedded_slot;

  explicit deadline_handler(Operation& op) noexcept : op_(reinterpret_cast<std::uintptr_t>(&op)) {}
  /// A moved-from handler still points to the state, as a failing initiation asks it for its
  /// allocator. The initiating function keeps the state until then.
  deadline_handler(deadline_handler&& other) noexcept : op_(other.op_) { other.op_ |= moved_from; }
  deadline_handler& operator=(deadline_handler&&) = delete;
  ~deadline_handler()
  {
    if (is_owner()) op().abandon();
  }

  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept
  {
    return cancellation_slot_type(op().signal());
  }

  [[nodiscard]] const wrapped_handler& inner() const noexcept { return op().handler(); }

  template <class... Args>
  void operator()(Args&&... args)
  {
    Operation& state = op();
    op_ |= moved_from;
    state.complete(std::forward<Args>(args)...);
  }

private:
  static constexpr std::uintptr_t moved_from = 1;

  [[nodiscard]] bool is_owner() const noexcept { return (op_ & moved_from) == 0; }
  [[nodiscard]] Operation& op() const noexcept
  {
    return *reinterpret_cast<Operation*>(op_ & ~moved_from);
  }

  /// The state's address; the lowest bit is set if this was moved from. A separate flag would cost
  /// two more instructions for each of Asio's moves, up to five.
  std::uintptr_t op_;
};

}  // namespace asio_wheel::detail
