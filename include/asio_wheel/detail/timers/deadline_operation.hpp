// L3 timers: an operation with a deadline, from its initiation to the call of its handler.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/completion_result.hpp>
#include <asio_wheel/detail/engine/context_gate.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>
#include <asio_wheel/detail/timers/abandonable_handler.hpp>
#include <asio_wheel/detail/timers/policy_use.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// Posts a function to the wheel's context. Returns false, and leaves the function alone, if the
/// context is going away. Throws what posting throws.
template <class Function>
[[nodiscard]] bool post_to_wheel(wheel_core& c, Function& f)
{
  const posting_guard inside(c);
  if (inside)
    asio::require(wheel_executor(c), asio::execution::blocking.never).execute(std::move(f));
  return bool(inside);
}

/// The state of one operation with a deadline: the user's handler, the deadline and what the
/// operation proper listens to, in one allocation.
///
/// `Fallback` is the executor that the handler is offered. It is no_executor if the handler has no
/// executor and may run anywhere, or if it has an executor whatever it is offered. `Where` is a
/// deadline_filing or a guard_filing; it has `terms` if the operation may have a policy, and
/// `feeds` if it is of a stream.
///
/// Who has the state, how it is given up, and who has it then:
///
/// | The state is with           | until                             | then with               |
/// |-----------------------------|-----------------------------------|-------------------------|
/// | the operation proper        | complete(), abandon()             | nobody, or holders      |
/// | the last of its **holders** | release_here()                    | nobody                  |
/// |                             | release_elsewhere()               | nobody, or a `deliver`  |
/// | a step `deliver`            | deliver(), drop()                 | nobody                  |
/// |                             | keep(), where an executor refuses | the next pass           |
/// | the next pass               | do_ask(), which sends or destroys | a `deliver`, or nobody  |
///
/// Holders (deadline_wait.hpp) are there beside the operation: its initiation, cancellations from
/// outside, and the deadline, which may be on its way as a step `fire` or `abandon`. Where the
/// state is then with nobody, it is freed, and after that the handler is called.
template <class Handler, class Fallback, class Where, class... Signatures>
class deadline_operation final : public deadline_wait {
public:
  using handler_type = Handler;
  using executor_type = asio::associated_executor_t<Handler, Fallback>;
  static constexpr bool runs_anywhere = std::is_same_v<executor_type, no_executor>;

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
    if constexpr (is_guarded) static_cast<void>(where.by.guard.release());
    return *op;
  }

  /// For make().
  template <class H, class F>
  deadline_operation(H&& handler, F&& fallback, const Where& where, asio::cancellation_type_t type,
                     deadline_report report)
    : deadline_wait(&do_ask, where, type, report),
      handler_(std::forward<H>(handler)),
      fallback_(std::forward<F>(fallback)),
      policy_(where),
      feeds_(where)
  {}
  deadline_operation(const deadline_operation&) = delete;
  deadline_operation& operator=(const deadline_operation&) = delete;

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

  [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

  /// The operation has completed.
  template <class... Args>
  void complete(Args&&... args)
  {
    if constexpr (is_metered)
      if (policy_) policy_.note_end(core());
    if constexpr (is_of_stream && moves_bytes<Args...>) feeds_.pass_on(*guard_, args...);
    departure left;
    if (!is_guarded || !end_guarded()) left = leave(operation_end::none);
    const epilogue later{guard_, left.to_tell_of};
    if (!left.is_last) [[unlikely]]
      return leave_result_behind(std::forward<Args>(args)...);
    if (keeps_core_) [[unlikely]]  // if not, there is nothing to replace
      return call_replaced(std::forward<Args>(args)...);
    if constexpr (is_metered)
      if (policy_ && !is_left_alone()) policy_.count_met();
    take_handler(this, handler_)(std::forward<Args>(args)...);
  }

  /// The operation was destroyed.
  [[gnu::noinline, gnu::cold]] void abandon() noexcept
  {
    const epilogue later{guard_, nullptr};
    if (leave_and_tell(operation_end::abandoned)) destroy();
  }

private:
  static constexpr bool is_guarded = std::is_base_of_v<guard_filing, Where>;
  static constexpr bool is_metered = requires(Where w) { w.terms; };
  static constexpr bool is_of_stream = requires(Where w) { w.feeds; };
  template <class... Args>
  static constexpr bool moves_bytes =
    std::is_invocable_v<void(const error_code&, std::size_t), Args...>;

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

  /// Passes on a cancellation from the slot of the user's handler.
  class forward : public wait_link {
  public:
    void operator()(asio::cancellation_type_t type)
    {
      deadline_wait* const held = deadline_wait::hold(*this, type);
      if (!held) return;
      auto& op = static_cast<deadline_operation&>(*held);
      op.ask_to_stop(type);
      op.release_elsewhere();
    }
  };

  void listen()
  {
    auto slot = asio::get_associated_cancellation_slot(handler_, no_slot{});
    if (slot.is_connected()) tie(slot.template emplace<forward>());
  }

  // The handler's executor.

  /// The handler's executor, as a copy: while it has a function of the state, the state may go.
  [[nodiscard]] executor_type executor() const noexcept { return kept_executor(); }

  /// The same, without a copy where the handler or the state has it.
  [[nodiscard]] decltype(auto) kept_executor() const noexcept
  {
    if constexpr (runs_anywhere)
      return no_executor{};
    else if constexpr (std::is_same_v<Fallback, no_executor>)
      return asio::get_associated_executor(handler_, context_executor());
    else
      return asio::get_associated_executor(handler_, fallback_);
  }

  /// A copy of the handler's executor, if it may be a strand of the wheel's context and there is
  /// memory.
  [[nodiscard]] asio::any_io_executor strand() const noexcept
  {
    if constexpr ((is_strand<executor_type> &&
                   std::is_convertible_v<executor_type, asio::any_io_executor>) ||
                  std::is_same_v<executor_type, asio::any_io_executor>) {
      try {
        if (!gate_) return kept_executor();
      } catch (...) {
      }
    }
    return {};
  }

  /// Finds the gate of the handler's context, unless it is the wheel's context. Call this once.
  [[gnu::always_inline]] void find_gate()
  {
    const auto& ex = kept_executor();
    if (auto* const c = context_elsewhere(ex, context())) gate_ = gate_of(*c);
  }

  /// Returns true if the handler is to be called elsewhere than a wait of the wheel.
  [[nodiscard]] bool has_other_executor() const noexcept
  {
    return gate_ || !is_native(executor(), context_executor());
  }

  /// Returns true if the handler's context is known and not the wheel's. Then the wheel's may be
  /// out of work, and must not be needed.
  [[nodiscard]] bool has_other_context() const noexcept
  {
    if constexpr (std::is_constructible_v<asio::any_io_executor, const executor_type&>)
      return !is_of_context(kept_executor(), context());
    else
      return bool(gate_);
  }

  // The way there.

  /// Passes a function to the handler's executor, unless its context has gone.
  template <class Post>
  [[nodiscard]] submission_result submit_there(Post post)
  {
    const kept_context there(gate_.get());
    return there ? submit(this, post) : submission_result::dropped;
  }

  /// Passes on a step, and with it the caller's hold on the state, or the state. If an executor
  /// refuses it, the next pass tries again.
  template <class Post>
  void pass_on(step_kind k, Post post)
  {
    const submission_result r = submit_there(post);
    if (r == submission_result::taken || (r == submission_result::refused && keep(k))) return;
    drop(k);
  }

  /// Gives up what a step was passed on with.
  void drop(step_kind k)
  {
    if (k == step_kind::deliver) return destroy();
    if (k == step_kind::fire) drop_deadline();
    release_elsewhere();
  }

  [[nodiscard]] sent_step make_sent(const submission& attempt, const step& s) noexcept
  {
    return {*this, &take, attempt, s};
  }

  /// Sends a step to the handler's executor. A deadline goes behind what is queued there.
  void send(const step& s)
  {
    pass_on(s.kind, [&](const submission& attempt) {
      sent_step sent = make_sent(attempt, s);
      const executor_type ex = executor();
      static_cast<void>(require_target(ex));
      if constexpr (never_blocks<executor_type>)
        if (s.kind == step_kind::fire) return asio::post(ex, std::move(sent));
      asio::dispatch(ex, std::move(sent));
    });
  }

  /// Posts a step to the handler's executor: by way of the wheel's if the handler has none, or an
  /// executor that might call it at once. Returns false, and leaves the step alone, if the wheel is
  /// needed and its context is going away.
  [[nodiscard]] bool post_there(relayed_step& relayed)
  {
    if constexpr (!runs_anywhere && never_blocks<executor_type>) {
      asio::post(require_target(executor()), std::move(relayed.sent));
      return true;
    } else {
      return post_to_context(relayed);
    }
  }

  /// Posts a step to the context of the handler's executor, as post_there().
  [[nodiscard]] bool post_to_context(relayed_step& relayed)
  {
    if constexpr (!runs_anywhere) {
      if (has_other_context()) {
        asio::post(innermost_executor(require_target(executor())), std::move(relayed));
        return true;
      }
    }
    return post_to_wheel(core(), relayed);
  }

  // The deadline.

  /// The deadline has come, or was cancelled or rejected; or the kept result of the operation was.
  static void do_ask(wait_op& op, shard& at, wait_request request,
                     [[maybe_unused]] time_point taken_up)
  {
    if (request == wait_request::describe()) return describe_handler<Handler>(at);
    auto& self = static_cast<deadline_operation&>(op);
    if (request == wait_request::destroy()) return self.destroy();  // with the result
    if constexpr (is_abandonable<Handler>)
      if (self.handler_.turns != 0) return self.send({step_kind::abandon});
    if constexpr (!runs_anywhere)
      if (self.has_other_executor() && self.check() != firing::off)
        return self.send(self.first_step(taken_up, self.strand()));
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
    switch (decide(deadline, has_other_context())) {
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
    ask_to_stop(type());
    if constexpr (is_abandonable<Handler>) {
      handler_.turns = 1;
      if (!give_time()) abandon_here();
    } else {
      release_elsewhere();
    }
  }

  /// Cancels the operation, which leaves its result behind if it completes meanwhile. Requires a
  /// hold, and gives it up if the operation throws.
  void ask_to_stop(asio::cancellation_type_t type)
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
    if (handler_.turns < most_turns && goes_on()) {
      ++handler_.turns;
      if (give_time()) return;
    }
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

  // The end.

  /// Gives up a hold.
  void release_elsewhere()
  {
    if (release()) finish_elsewhere();
  }

  /// Gives up a hold where the handler may be called at once.
  void release_here()
  {
    if (!release()) return;
    if (end() == operation_end::completed)
      deliver();
    else
      destroy();
  }

  // From here on nobody else holds the state.

  /// What to report in place of operation_aborted, if anything; and counts the end.
  [[nodiscard]] error_code replacement_error(wait_outcome how, bool is_abandoned = false) noexcept
  {
    error_code ec;
    if constexpr (is_guarded)
      ec = guards_error(how);
    else
      ec = to_error(how);
    if constexpr (is_metered)
      if (policy_) policy_.count(how, is_abandoned, ec);
    return ec;
  }

  /// Sends the result to the handler, if there is one.
  [[gnu::noinline, gnu::cold]] void finish_elsewhere()
  {
    if (end() != operation_end::completed) return destroy();
    pass_on(step_kind::deliver, [&](const submission& attempt) {
      relayed_step r{make_sent(attempt, {step_kind::deliver})};
      // Without the wheel nobody is left to lend an executor. The operation has completed in this
      // thread.
      if (!post_there(r)) r();
    });
  }

  void deliver()
  {
    left_behind left = take_result();
    Handler handler = take_handler_and_core();
    left.result.deliver([&](auto&&... values) {
      call_with_replacement(left.instead, std::move(handler), std::move(values)...);
    });
  }

  void destroy() noexcept { [[maybe_unused]] const Handler h = take_handler_and_core(); }

  /// Calls the handler with the replacement, if there is one.
  template <class... Args>
  [[gnu::noinline, gnu::cold]] void call_replaced(Args&&... args)
  {
    const error_code instead = is_left_alone() ? error_code() : replacement_error(replacement());
    call_with_replacement(instead, take_handler_and_core(), std::forward<Args>(args)...);
  }

  /// The operation has completed while somebody holds the state.
  template <class... Args>
  [[gnu::noinline, gnu::cold]] void leave_result_behind(Args&&... args)
  {
    try {
      left_behind& left = left_.emplace(require_target(executor()), gate_.get());
      left.result.store(std::forward<Args>(args)...);
      // While the guard is counted.
      if (const auto how = take_completion()) left.instead = replacement_error(*how);
    } catch (...) {
      if (leave_and_tell(operation_end::abandoned)) destroy();
      throw;
    }
    if (leave_and_tell(operation_end::completed)) deliver();
  }

  /// Destroys the state if a move throws. Out of line: inlined, GCC 12 takes what it returns for
  /// uninitialised.
  [[nodiscard, gnu::noinline, gnu::cold]] left_behind take_result()
  {
    try {
      return *std::move(left_);
    } catch (...) {
      destroy();
      throw;
    }
  }

  [[nodiscard, gnu::noinline, gnu::cold]] Handler take_handler_and_core()
  {
    const auto core_meanwhile = take_core();
    return take_handler(this, handler_);
  }

  Handler handler_;
  [[no_unique_address]] Fallback fallback_;
  [[no_unique_address]] std::conditional_t<is_metered, policy_use, no_policy> policy_;
  [[no_unique_address]] std::conditional_t<is_of_stream, stream_feed, no_feed> feeds_;
  intrusive_ptr<context_gate> gate_;  ///< null for the wheel's context
  std::optional<left_behind> left_;   ///< once the operation has completed under a hold
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
