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
  using base::check, base::begin, base::core, base::drop, base::executor, base::goes_on,
    base::handler_, base::keep_abandonment, base::keep_refused, base::leave_alone,
    base::release_elsewhere, base::release_here, base::replacement, base::replacement_error,
    base::requeue, base::submit_or_keep, base::submit_there, base::wait_for_next_tick;
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
    if (request == wait_request::destroy()) return self.discard();  // the result
    if constexpr (is_abandonable<Handler>)
      if (self.handler_.is_late) return self.dispatch_abandonment();
    if constexpr (!runs_anywhere)
      if (self.is_elsewhere() && self.check() != firing::off)
        return self.send(taken_up, handlers_begun(self.core()));
    switch (self.begin(taken_up)) {
      case firing::now: return self.fire();
      case firing::later:
        if (self.requeue()) self.finish_elsewhere();
        return;
      case firing::off: return self.release_elsewhere();
    }
  }

  /// A step has arrived, with the hold on the state, or the state, that it was sent with.
  static void take(deadline_wait& op, const sent_step& s, arrival at)
  {
    auto& self = static_cast<deadline_operation&>(op);
    if (runs_anywhere && at == arrival::half_way) at = arrival::here;
    switch (s.what) {
      case step::fire:
        if (at == arrival::here) return self.arrive(s.taken_up, s.begun);
        if (at == arrival::nowhere) return self.drop_and_release();
        return self.send(s.taken_up, s.begun);
      case step::abandon:
        if constexpr (is_abandonable<Handler>) {
          if (at == arrival::here) return self.abandon_unless_ended();
          if (at == arrival::nowhere) return self.release_elsewhere();
          return self.dispatch_abandonment();
        }
        return;
      case step::deliver:
        if (at == arrival::here) return self.deliver();
        if (at == arrival::nowhere) return self.discard();
        return self.dispatch_result();
    }
  }

  [[nodiscard]] sent_step sent_deadline(const submission& attempt, time_point taken_up,
                                        std::uint64_t begun) noexcept
  {
    sent_step s = this->sent(attempt, step::fire);
    s.taken_up = taken_up;
    s.begun = begun;
    return s;
  }

  /// Sends the deadline to the handler's executor, with its hold. `begun` is how many handlers of
  /// the wheel had begun when it was there last, or was taken up.
  ///
  /// On a strand, a handler that has destroyed an I/O object may have run before the deadline,
  /// while the object's aborted operation has yet to reach the strand. So the deadline goes from
  /// the executor once through its context, behind what is queued, and back. If a handler of the
  /// wheel has begun meanwhile, the deadline goes round again, as that handler may have destroyed
  /// the object.
  void send(time_point taken_up, std::uint64_t begun)
  {
    pass_on([&](const submission& attempt) {
      sent_step d = sent_deadline(attempt, taken_up, begun);
      const executor_type ex = executor();
      static_cast<void>(require_target(ex));
      if constexpr (never_blocks<executor_type>)
        asio::post(ex, std::move(d));
      else
        asio::dispatch(ex, std::move(d));
    });
  }

  /// Runs on the handler's executor.
  void arrive(time_point taken_up, std::uint64_t begun)
  {
    constexpr int most_rounds = 256;
    if (check() == firing::off) return release_here();
    const std::uint64_t now_begun = handlers_begun(core());
    const bool is_first = rounds_ == 0;
    const bool is_clear = now_begun == begun && !is_first;
    if (is_first) ++rounds_;
    if (now_begun != begun) ++rounds_;
    if (pauses(is_clear)) return;
    if (is_clear || rounds_ >= most_rounds) return fire_here(taken_up);
    go_round(taken_up, now_begun);
  }

  /// Leaves the deadline to the next tick if it should wait. While handlers of waits are about to
  /// be called, any of them may run where the deadline is. And if several threads run the context,
  /// one of them may have taken a completion from it, and have lost its processor. In another
  /// context it goes round instead: nobody may be left to make the wheel's next tick.
  bool pauses(bool is_clear)
  {
    constexpr int rounds_at_once = 8, most_pauses = 512, most_when_clear = 4;
    const bool has_peers = note_thread(core());
    if (this->is_of_other_context()) return false;
    const bool wants =
      is_clear ? has_peers && rounds_ > 1 && pauses_ < most_when_clear
               : rounds_ % rounds_at_once == 0 && pauses_ < most_pauses && has_calls_ahead(core());
    if (!wants) return false;
    ++pauses_;
    const auto rounds = std::exchange(rounds_, 0);  // before others may have the state
    if (wait_for_next_tick()) return true;
    rounds_ = rounds;
    return false;
  }

  /// Sends the deadline once through the context of the handler's executor.
  void go_round(time_point taken_up, std::uint64_t begun)
  {
    pass_on([&](const submission& attempt) {
      relayed_step r{sent_deadline(attempt, taken_up, begun)};
      static_cast<void>(require_target(executor()));
      static_cast<void>(this->post_to_context(r));
    });
  }

  template <class Post>
  void pass_on(Post post)
  {
    if (!submit_or_keep(post, [&] { return keep_refused(); })) drop_and_release();
  }

  void drop_and_release()
  {
    drop();
    release_elsewhere();
  }

  /// The deadline has arrived: cancels the operation if it still runs, on the handler's executor.
  void fire_here(time_point taken_up)
  {
    switch (begin(taken_up)) {
      case firing::now: return fire();
      case firing::later: return go_round(taken_up, handlers_begun(core()));
      case firing::off: return release_here();
    }
  }

  /// The deadline begins: cancels the operation, on the handler's executor.
  void fire()
  {
    if constexpr (is_abandonable<Handler>) {
      ask_to_stop(this->type());
      handler_.is_late = true;
      rounds_ = 0;
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
    const auto post = [&](const submission& attempt) {
      relayed_step a{this->sent(attempt, step::abandon)};
      static_cast<void>(this->post_there(a));
    };
    switch (submit_there(post)) {
      case submission_result::taken: break;
      case submission_result::refused: return false;
      case submission_result::dropped: release_elsewhere(); break;
    }
    return true;
  }

  void dispatch_abandonment()
  {
    const auto post = [&](const submission& attempt) {
      asio::dispatch(require_target(executor()), this->sent(attempt, step::abandon));
    };
    if (!submit_or_keep(post, [&] { return keep_abandonment(); })) release_elsewhere();
  }

  void abandon_unless_ended()
  {
    constexpr int most_rounds = 8;
    if (++rounds_ < most_rounds && goes_on() && give_time()) return;
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
      if (keep_abandonment()) return;
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

  // Of the deadline, so far.
  std::uint16_t rounds_ = 0;
  std::uint16_t pauses_ = 0;
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
