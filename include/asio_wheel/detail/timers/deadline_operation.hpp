// L3 timers: an operation with a deadline, from its initiation to the call of its handler.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/completion_result.hpp>
#include <asio_wheel/detail/engine/context_gate.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/innermost_executor.hpp>
#include <asio_wheel/detail/engine/submission.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>
#include <asio_wheel/detail/timers/abandonable_handler.hpp>
#include <asio_wheel/detail/timers/policy_use.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// The state of one operation with a deadline: the user's handler, the deadline and what the
/// operation proper listens to, in one allocation.
///
/// `Fallback` is the executor that the handler is offered. It is no_executor if the handler has no
/// executor and may run anywhere, or if it has an executor whatever it is offered. `Where` is a
/// deadline_filing or a guard_filing; it has `terms` if the operation may have a policy.
template <class Handler, class Fallback, class Where, class... Signatures>
class deadline_operation final : public deadline_wait {
public:
  using handler_type = Handler;

  /// Takes over the handler. Throws what its allocator, its move and its slot throw.
  /// `is_at_home` is true if the handler's executor is known to be of the wheel's context.
  template <class H>
  static deadline_operation& make(H&& handler, const Fallback& fallback, Where& where,
                                  asio::cancellation_type_t type, deadline_report report,
                                  bool is_at_home)
  {
    auto* const op =
      make_op<deadline_operation>(std::forward<H>(handler), fallback, where, type, report)
        .release();
    if constexpr (!runs_anywhere)
      if (!is_at_home) op->find_gate();
    if constexpr (has_slot<Handler>) op->listen();
    // The state takes over the count of the guard.
    if constexpr (is_guarded) static_cast<void>(where.by.guard.release());
    return *op;
  }

  /// For make().
  template <class H>
  deadline_operation(H&& handler, const Fallback& fallback, const Where& where,
                     asio::cancellation_type_t type, deadline_report report)
    : deadline_wait(&deadline_operation::do_ask, where, type, report),
      handler_(std::forward<H>(handler)),
      fallback_(fallback),
      policy_(where),
      feeds_(where)
  {}
  deadline_operation(const deadline_operation&) = delete;
  deadline_operation& operator=(const deadline_operation&) = delete;
  ~deadline_operation() {}  // no result is left here by then

  /// Lasts while the operation is being initiated. Its end files the deadline, also after an
  /// exception, unless the operation has ended.
  struct initiation {
    deadline_operation& op;
    const Where& where;

    ~initiation() noexcept(false)
    {
      bool goes_on;
      if constexpr (is_guarded)
        goes_on = op.start_guarded();
      else
        goes_on = op.start(where.when);
      if (!goes_on) op.finish_elsewhere();
    }
  };

  /// The operation has completed.
  template <class... Args>
  void complete(Args&&... args)
  {
    if constexpr (is_metered)
      if (policy_) policy_.note_end(core());
    if constexpr (may_feed<Args...>) feeds_.pass_on(*guard_, args...);
    departure left;
    if (!is_guarded || !end_guarded()) left = leave(operation_end::none);
    const epilogue later{guard_, left.to_tell_of};
    if (!left.is_last) [[unlikely]]
      return leave_result_behind(std::forward<Args>(args)...);
    if (keeps_core_) [[unlikely]]  // if not, there is nothing to replace
      return call_replaced(std::forward<Args>(args)...);
    if constexpr (is_metered)
      if (policy_) policy_.count_met();
    take_handler(this, handler_)(std::forward<Args>(args)...);
  }

  /// The operation was destroyed.
  [[gnu::noinline, gnu::cold]] void abandon() noexcept
  {
    const epilogue later{guard_, nullptr};
    if (leave_and_tell(operation_end::abandoned)) destroy();
  }

private:
  template <class>
  friend class deadline_handler;

  static constexpr bool is_guarded = std::is_base_of_v<guard_filing, Where>;
  static constexpr bool is_metered = requires(Where w) { w.terms; };
  static constexpr bool is_of_stream = requires(Where w) { w.feeds; };
  template <class... Args>
  static constexpr bool may_feed =
    is_of_stream&& std::is_invocable_v<void(const error_code&, std::size_t), Args...>;
  using executor_type = asio::associated_executor_t<Handler, Fallback>;
  static constexpr bool runs_anywhere = std::is_same_v<executor_type, no_executor>;
  static constexpr auto first_time = ~std::uint64_t{0};

  /// What is left to do after the handler of an ended operation.
  struct epilogue {
    operation_guard* guard;  ///< counted
    shard* to_tell_of;

    [[gnu::always_inline]] ~epilogue()
    {
      if constexpr (is_guarded)
        operation_guard::rest(guard);
      else if (to_tell_of)
        tell_driver(*to_tell_of);
    }
  };

  /// What an operation that has completed leaves behind for the last holder.
  struct left_behind {
    left_behind(const executor_type& ex, context_gate* gate) : work(ex, gate) {}

    completion_result<Signatures...> result;
    error_code instead;  ///< reported in place of operation_aborted, if set
    work_of_context<executor_type> work;
  };

  /// The deadline on its way to the handler's executor, with a hold on the state. The executor may
  /// drop it.
  ///
  /// On a strand, a handler that has destroyed an I/O object may have run before the deadline,
  /// while the object's aborted operation has yet to reach the strand. So the deadline goes from
  /// the executor once through its context, behind what is queued, and back. If a handler of the
  /// wheel has begun meanwhile, the deadline goes round again, as that handler may have destroyed
  /// the object. While many begin, it waits for a tick now and then.
  class posted_deadline {
  public:
    posted_deadline(deadline_operation& op, const submission& attempt, time_point taken_up,
                    std::uint64_t begun) noexcept
      : op_(&op),
        attempt_(&attempt),
        taken_up_(taken_up),
        begun_(begun)
    {}
    posted_deadline(posted_deadline&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)),
        attempt_(other.attempt_),
        taken_up_(other.taken_up_),
        begun_(other.begun_)
    {}
    posted_deadline& operator=(posted_deadline&&) = delete;
    ~posted_deadline()
    {
      if (!op_ || submission::give_back(attempt_, op_)) return;
      op_->drop();
      op_->release_elsewhere();
    }

    void operator()() { std::exchange(op_, nullptr)->arrive(taken_up_, begun_); }

    void go_on() { std::exchange(op_, nullptr)->send(taken_up_, begun_); }

  private:
    deadline_operation* op_;
    const submission* attempt_;
    time_point taken_up_;
    std::uint64_t begun_;  ///< the wheel's handlers, when last at the executor
  };

  /// A posted_deadline on its way through the context of the handler's executor.
  struct round {
    posted_deadline deadline;

    void operator()() { deadline.go_on(); }
  };

  /// A function on its way through the handler's executor, which may drop it.
  template <auto Run, auto Dispatch, auto Drop>
  class posted_call {
  public:
    posted_call(deadline_operation& op, const submission& attempt) noexcept
      : op_(&op),
        attempt_(&attempt)
    {}
    posted_call(posted_call&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)),
        attempt_(other.attempt_)
    {}
    posted_call& operator=(posted_call&&) = delete;
    ~posted_call()
    {
      if (op_ && !submission::give_back(attempt_, op_)) (op_->*Drop)();
    }
    void operator()() { (std::exchange(op_, nullptr)->*Run)(); }

    void go_on() { (std::exchange(op_, nullptr)->*Dispatch)(); }

  private:
    deadline_operation* op_;
    const submission* attempt_;
  };

  /// A posted_call on its way through the wheel's executor. If the handler has its own executor,
  /// the call goes on to it, and may run there at once.
  template <class Call>
  struct relayed_call {
    Call call;

    void operator()()
    {
      if constexpr (runs_anywhere)
        call();
      else
        call.go_on();
    }
  };

  /// Passes on a cancellation from the slot of the user's handler.
  class forward : public slot_link {
  public:
    void operator()(asio::cancellation_type_t type)
    {
      if (deadline_wait* const op = deadline_wait::hold(*this, type))
        static_cast<deadline_operation&>(*op).emit(type);
    }
  };

  [[nodiscard]] decltype(auto) executor() const noexcept
  {
    if constexpr (runs_anywhere)
      return no_executor{};
    else if constexpr (std::is_same_v<Fallback, no_executor>)
      return asio::get_associated_executor(handler_, native());
    else
      return asio::get_associated_executor(handler_, fallback_);
  }

  /// Finds the gate of the handler's context, unless it is the wheel's context.
  void find_gate()
  {
    const executor_type& ex = executor();
    if constexpr (erased_executor<executor_type>)
      if (!ex) return;
    const auto find = [&](const auto& e) {
      if (!is_of_context(e, wheel_context(core()))) gate_ = gate_of(context_of(e));
    };
    try {
      if constexpr (hides_context<executor_type>)
        find(innermost_executor(ex));
      else
        find(ex);
    } catch (const std::logic_error&) {
      // The executor hides its context.
    } catch (...) {
      destroy();
      throw;
    }
  }

  /// Passes a function to the handler's executor, unless its context has gone.
  template <class Post>
  [[nodiscard]] submission_result submit_there(Post post)
  {
    const kept_context there(gate_.get());
    return there ? submit(this, post) : submission_result::dropped;
  }

  void listen()
  {
    auto slot = asio::get_associated_cancellation_slot(handler_, no_slot{});
    if (!slot.is_connected()) return;
    try {
      tie(slot.template emplace<forward>());
    } catch (...) {
      destroy();
      throw;
    }
  }

  // The deadline's side.

  /// The deadline has come, or was cancelled or refused; or the kept result of the operation was.
  static void do_ask(wait_op& base, shard& at, wait_request request,
                     [[maybe_unused]] time_point taken_up)
  {
    if (request == wait_request::describe()) return describe_handler<Handler>(at);
    auto& self = static_cast<deadline_operation&>(base);
    if (request == wait_request::destroy()) return self.discard();  // the result
    if constexpr (!runs_anywhere) {
      const bool is_elsewhere = self.gate_ || !is_native(self.executor(), self.native());
      if (is_elsewhere && self.check() != firing::off) return self.send(taken_up);
    }
    switch (self.begin(taken_up)) {
      case firing::now: return self.fire();
      case firing::later:
        if (self.requeue()) self.finish_elsewhere();
        return;
      case firing::off: return self.release_elsewhere();
    }
  }

  /// Sends the deadline to the handler's executor, with its hold.
  void send(time_point taken_up, std::uint64_t begun = first_time)
  {
    pass_on([&](const submission& attempt) {
      posted_deadline d(*this, attempt, taken_up, begun);
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
    constexpr int most_rounds = 256, rounds_in_a_tick = 8;
    if (check() == firing::off) return release_here();
    const std::uint64_t now_begun = handlers_begun(core());
    if (now_begun == begun || rounds_ == most_rounds) return fire_here(taken_up);
    ++rounds_;
    if (rounds_ % rounds_in_a_tick != 0 || !keep_refused()) go_round(taken_up, now_begun);
  }

  /// Sends the deadline once through the context of the handler's executor.
  void go_round(time_point taken_up, std::uint64_t begun)
  {
    pass_on([&](const submission& attempt) {
      round r{posted_deadline(*this, attempt, taken_up, begun)};
      const executor_type ex = executor();
      static_cast<void>(require_target(ex));
      if constexpr (std::is_constructible_v<asio::any_io_executor, const executor_type&>) {
        if (!is_of_context(ex, wheel_context(core())))
          return asio::post(innermost_executor(ex), std::move(r));
      }
      static_cast<void>(post_to_wheel(core(), r));
    });
  }

  /// Passes the deadline on. If the executor refuses it, the next pass tries again.
  template <class Post>
  void pass_on(Post post)
  {
    switch (submit_there(post)) {
      case submission_result::taken: return;
      case submission_result::refused:
        if (keep_refused()) return;
        break;
      case submission_result::dropped: break;
    }
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
      ask_to_stop(type());
      rounds_ = 0;
      if (!give_time()) abandon_here();
    } else {
      emit(type());
    }
  }

  /// Cancels the operation, and gives up a hold. An operation that completes meanwhile queues its
  /// handler, as if nothing had held it.
  void emit(asio::cancellation_type_t type)
  {
    ask_to_stop(type);
    release_elsewhere();
  }

  [[gnu::always_inline]] void ask_to_stop(asio::cancellation_type_t type)
  {
    try {
      signal().emit(type);
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
      using call = posted_call<&deadline_operation::abandon_unless_ended,
                               &deadline_operation::dispatch_abandonment,
                               &deadline_operation::release_elsewhere>;
      call a(*this, attempt);
      if constexpr (!runs_anywhere && never_blocks<executor_type>) {
        asio::post(require_target(executor()), std::move(a));
      } else {
        relayed_call<call> relayed{std::move(a)};
        static_cast<void>(post_to_wheel(core(), relayed));
      }
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
    constexpr int most_refusals = 256;
    const auto post = [&](const submission& attempt) {
      asio::dispatch(require_target(executor()),
                     posted_call<&deadline_operation::abandon_unless_ended,
                                 &deadline_operation::dispatch_abandonment,
                                 &deadline_operation::release_elsewhere>(*this, attempt));
    };
    switch (submit_there(post)) {
      case submission_result::taken: return;
      case submission_result::refused:
        if (++rounds_ < most_refusals && give_time()) return;
        break;
      case submission_result::dropped: break;
    }
    release_elsewhere();
  }

  void abandon_unless_ended()
  {
    constexpr int most_rounds = 8;
    if (++rounds_ < most_rounds && goes_on() && give_time()) return;
    abandon_here();
  }

  /// Calls the handler, and leaves the state to the operation, on the handler's executor.
  void abandon_here()
  {
    if (!leave_alone()) return release_here();
    const error_code instead = replacement_error(replacement(), true);
    auto handler = take_abandoned();
    release_here();
    call_with_error<Signatures...>(std::move(handler),
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

  void release_elsewhere()
  {
    if (release()) finish_elsewhere();
  }

  /// As release_elsewhere(), where the handler may be called at once.
  void release_here()
  {
    if (!release()) return;
    if (end() == operation_end::completed)
      deliver();
    else
      destroy();
  }

  // The end: nobody else holds the state.

  /// What to report in place of operation_aborted, if anything; and counts the end.
  [[nodiscard]] error_code replacement_error(wait_outcome how, bool is_abandoned = false) noexcept
  {
    error_code ec;
    if constexpr (is_guarded)
      ec = this->guards_error(how);
    else
      ec = to_error(how);
    if constexpr (is_metered)
      if (policy_) policy_.count(how, is_abandoned, ec);
    return ec;
  }

  /// Calls the handler with the replacement, if there is one.
  template <class... Args>
  [[gnu::noinline, gnu::cold]] void call_replaced(Args&&... args)
  {
    const error_code instead = replacement_error(replacement());
    call_with_replacement(instead, take_handler_and_core(), std::forward<Args>(args)...);
  }

  /// The operation has completed while somebody holds the state.
  template <class... Args>
  [[gnu::noinline, gnu::cold]] void leave_result_behind(Args&&... args)
  {
    try {
      left_behind left(require_target(executor()), gate_.get());
      left.result.store(std::forward<Args>(args)...);
      left.instead = replacement_error(ask_replacement());  // while the guard is counted
      std::construct_at(&left_, std::move(left));
    } catch (...) {
      if (leave_and_tell(operation_end::abandoned)) destroy();
      throw;
    }
    if (leave_and_tell(operation_end::completed)) deliver();
  }

  /// Sends the result to the handler, if there is one.
  [[gnu::noinline, gnu::cold]] void finish_elsewhere()
  {
    if (end() != operation_end::completed) return destroy();
    pass_result_on([&](const submission& attempt) {
      using call = posted_call<&deadline_operation::deliver, &deadline_operation::dispatch_result,
                               &deadline_operation::discard>;
      call r(*this, attempt);
      if constexpr (!runs_anywhere && never_blocks<executor_type>) {
        asio::post(require_target(executor()), std::move(r));
      } else {
        relayed_call<call> relayed{std::move(r)};
        // Without the wheel nobody is left to lend an executor. The operation has completed in this
        // thread.
        if (!post_to_wheel(core(), relayed)) relayed();
      }
    });
  }

  void dispatch_result()
  {
    pass_result_on([&](const submission& attempt) {
      asio::dispatch(require_target(executor()),
                     posted_call<&deadline_operation::deliver, &deadline_operation::dispatch_result,
                                 &deadline_operation::discard>(*this, attempt));
    });
  }

  /// Passes the result on. If the executor refuses it, the next pass tries again.
  template <class Post>
  void pass_result_on(Post post)
  {
    switch (submit_there(post)) {
      case submission_result::taken: return;
      case submission_result::refused:
        if (keep_finished()) return;
        break;
      case submission_result::dropped: break;
    }
    discard();
  }

  void deliver()
  {
    left_behind left = take_result();
    left.result.deliver([&](auto&&... values) {
      call_with_replacement(left.instead, take_handler_and_core(), std::move(values)...);
    });
  }

  [[nodiscard]] left_behind take_result()
  {
    left_behind left = std::move(left_);
    std::destroy_at(&left_);
    return left;
  }

  void discard() noexcept
  {
    std::destroy_at(&left_);
    destroy();
  }

  void destroy() noexcept { [[maybe_unused]] const Handler h = take_handler_and_core(); }

  [[nodiscard, gnu::noinline, gnu::cold]] Handler take_handler_and_core()
  {
    const auto core_meanwhile = take_core();
    return take_handler(this, handler_);
  }

  Handler handler_;
  [[no_unique_address]] Fallback fallback_;
  [[no_unique_address]] std::conditional_t<is_metered, policy_use, no_policy> policy_;
  intrusive_ptr<context_gate> gate_;  ///< null for the wheel's context
  int rounds_ = 0;                    ///< of the deadline, so far
  [[no_unique_address]] std::conditional_t<is_of_stream, stream_feed, no_feed> feeds_;
  union {
    left_behind left_;  ///< once the operation has completed under a hold
  };
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

  [[nodiscard]] const wrapped_handler& inner() const noexcept { return op().handler_; }

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
