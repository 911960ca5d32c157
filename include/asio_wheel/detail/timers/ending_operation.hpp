// L3 timers: the end of an operation with a deadline, to the call of its handler.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/completion_result.hpp>
#include <asio_wheel/detail/engine/context_gate.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>
#include <asio_wheel/detail/timers/policy_use.hpp>

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

/// Base of `Operation`, a deadline_operation with the other arguments: the user's handler, the way
/// to its executor, and the result if the handler cannot be called at once.
///
/// Who has the state, and how it is given up:
///
/// | It belongs to                       | until                        | and then to          |
/// |-------------------------------------|------------------------------|----------------------|
/// | the operation proper                | complete(), abandon()        | nobody, or a holder  |
/// | beside it, **holders**: each        | release_here(),              | the last holder, if  |
/// | initiation, deadline, cancellation  | release_elsewhere(), keep()  | the operation is over |
/// | the last holder                     | deliver() or destroy()       | nobody               |
/// | the same, on another executor       | finish_elsewhere()           | the step `deliver`   |
/// | the step `deliver`, on its way      | deliver(); drop()            | nobody               |
/// | the same, but refused               | keep()                       | the next pass        |
/// | the next pass                       | send(), destroy()            | the step; nobody     |
///
/// Where nobody has the state any more, it is freed before the user's handler is called.
template <class Operation, class Handler, class Fallback, class Where, class... Signatures>
class ending_operation : public deadline_wait {
public:
  using handler_type = Handler;
  using executor_type = asio::associated_executor_t<Handler, Fallback>;
  static constexpr bool runs_anywhere = std::is_same_v<executor_type, no_executor>;

  ending_operation(const ending_operation&) = delete;
  ending_operation& operator=(const ending_operation&) = delete;

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
      if (policy_) policy_.count_met();
    take_handler(self(), handler_)(std::forward<Args>(args)...);
  }

  /// The operation was destroyed.
  [[gnu::noinline, gnu::cold]] void abandon() noexcept
  {
    const epilogue later{guard_, nullptr};
    if (leave_and_tell(operation_end::abandoned)) destroy();
  }

protected:
  static constexpr bool is_guarded = std::is_base_of_v<guard_filing, Where>;
  static constexpr bool is_metered = requires(Where w) { w.terms; };
  static constexpr bool is_of_stream = requires(Where w) { w.feeds; };
  template <class... Args>
  static constexpr bool moves_bytes =
    std::is_invocable_v<void(const error_code&, std::size_t), Args...>;

  template <class H, class F>
  ending_operation(ask_fn f, H&& handler, F&& fallback, const Where& where,
                   asio::cancellation_type_t type, deadline_report report)
    : deadline_wait(f, where, type, report),
      handler_(std::forward<H>(handler)),
      fallback_(std::forward<F>(fallback)),
      policy_(where),
      feeds_(where)
  {}
  ~ending_operation() = default;

  /// The handler's executor, as a copy: while it has a function of the state, the state may go.
  [[nodiscard]] executor_type executor() const noexcept { return kept_executor(); }

  /// The same, without a copy where the handler or the state has it.
  [[nodiscard]] decltype(auto) kept_executor() const noexcept
  {
    if constexpr (runs_anywhere)
      return no_executor{};
    else if constexpr (std::is_same_v<Fallback, no_executor>)
      return asio::get_associated_executor(handler_, native());
    else
      return asio::get_associated_executor(handler_, fallback_);
  }

  /// Finds the gate of the handler's context, unless it is the wheel's context. Call this once.
  [[gnu::always_inline]] void find_gate()
  {
    const auto& ex = kept_executor();
    if (auto* const c = context_elsewhere(ex, wheel_context(core()))) gate_ = gate_of(*c);
  }

  /// Returns true if the handler is to be called elsewhere than a wait of the wheel.
  [[nodiscard]] bool has_other_executor() const noexcept
  {
    return gate_ || !is_native(executor(), native());
  }

  /// Passes a function to the handler's executor, unless its context has gone.
  template <class Post>
  [[nodiscard]] submission_result submit_there(Post post)
  {
    const kept_context there(gate_.get());
    return there ? submit(this, post) : submission_result::dropped;
  }

  /// The same, for a step, with the caller's hold on the state, or with the state itself. If the
  /// executor refuses the step, leaves it to the next pass.
  template <class Post>
  void pass_on(step_kind k, Post post)
  {
    const submission_result r = submit_there(post);
    if (r == submission_result::taken || (r == submission_result::refused && keep(k))) return;
    drop(k);
  }

  /// Gives up what a step had that nobody will make.
  void drop(step_kind k)
  {
    if (k == step_kind::deliver) return destroy();
    if (k == step_kind::fire) drop_deadline();
    release_elsewhere();
  }

  [[nodiscard]] sent_step make_sent(const submission& attempt, const step& s) noexcept
  {
    return {*this, &Operation::take, attempt, s};
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

  /// Returns true if the handler's context is known and not the wheel's. Then the wheel's may be
  /// out of work, and must not be needed.
  [[nodiscard]] bool has_other_context() const noexcept
  {
    if constexpr (std::is_constructible_v<asio::any_io_executor, const executor_type&>)
      return !is_of_context(kept_executor(), wheel_context(core()));
    else
      return bool(gate_);
  }

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
      ec = this->guards_error(how);
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

private:
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

  [[nodiscard]] Operation* self() noexcept { return static_cast<Operation*>(this); }

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
      left_behind& left = left_.emplace(require_target(executor()), gate_.get());
      left.result.store(std::forward<Args>(args)...);
      left.instead = replacement_error(ask_replacement());  // while the guard is counted
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
    return take_handler(self(), handler_);
  }

protected:
  Handler handler_;

private:
  [[no_unique_address]] Fallback fallback_;
  [[no_unique_address]] std::conditional_t<is_metered, policy_use, no_policy> policy_;
  [[no_unique_address]] std::conditional_t<is_of_stream, stream_feed, no_feed> feeds_;
  intrusive_ptr<context_gate> gate_;  ///< null for the wheel's context
  std::optional<left_behind> left_;   ///< once the operation has completed under a hold
};

}  // namespace asio_wheel::detail
