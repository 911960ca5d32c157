// L2 engine: a wait with its handler, from the initiation to the call.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <concepts>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace asio_wheel::detail {

/// The cancellation slot of a handler without a slot. Converts to Asio's slot: handlers bound by
/// Boost.Beast always have a slot of that type.
struct no_slot {
  operator asio::cancellation_slot() const noexcept { return {}; }
};

template <class Handler>
inline constexpr bool has_slot =
  !std::is_same_v<asio::associated_cancellation_slot_t<Handler, no_slot>, no_slot>;

/// The executor of a handler without an executor, or with the wheel's: completions already run
/// where it wants to be called.
class no_executor {
public:
  template <class Function>
  void execute(Function&& f) const
  {
    std::forward<Function>(f)();
  }

  friend bool operator==(no_executor, no_executor) noexcept { return true; }
  friend bool operator!=(no_executor, no_executor) noexcept { return false; }
};

/// True if the handler has no executor: it returns whatever it is offered. Otherwise ask the
/// handler, and offer it the executor that counts: it may return another executor, return the
/// offered executor, or wrap it. any_completion_handler does the first or the second behind one
/// type.
template <class Handler>
inline constexpr bool lacks_executor =
  std::is_same_v<asio::associated_executor_t<Handler, no_executor>, no_executor>;

/// True if the handler's executor is of one type, whatever the handler is offered.
template <class Handler>
inline constexpr bool has_executor_type =
  std::is_same_v<asio::associated_executor_t<Handler, no_executor>,
                 asio::associated_executor_t<Handler, asio::any_io_executor>>;

/// True if the handler's executor may be, or contain, the `Candidate` that the handler is offered.
/// False if Asio's own rule for `executor_type` applies, or if no such executor can be made of the
/// candidate.
template <class Handler, class Candidate>
inline constexpr bool may_use_candidate = [] {
  if constexpr (lacks_executor<Handler> || !has_executor_type<Handler>)
    return true;
  else if constexpr (requires(const Handler& h) {
                       typename Handler::executor_type;
                       h.get_executor();
                     })
    return false;
  else
    return std::is_constructible_v<asio::associated_executor_t<Handler, Candidate>,
                                   const Candidate&>;
}();

/// Requires an outcome that ends the wait by a call.
[[nodiscard, gnu::always_inline]] inline error_code to_error(wait_outcome outcome) noexcept
{
  if (outcome == wait_outcome::expired) return {};
  if (outcome == wait_outcome::cancelled) return asio::error::operation_aborted;
  if (outcome == wait_outcome::timed_out) return asio::error::timed_out;
  return too_many_pending();
}

/// Tells a wait's shard the type of its handler (wait_request::describe).
template <class Handler>
void describe_handler(shard& at) noexcept
{
#if defined(BOOST_ASIO_NO_TYPEID) || defined(ASIO_NO_TYPEID)
  describe_wait(at, nullptr);
#else
  describe_wait(at, &typeid(Handler));
#endif
}

/// An `Op` of wait_op.hpp with a handler. Keeps work outstanding on the handler's `Executor` until
/// it calls the handler there. no_executor stands for the wheel's own.
template <class Handler, class Executor, class Op>
class wait_handler final : public std::conditional_t<has_slot<Handler>, linked<Op>, Op> {
  using base = std::conditional_t<has_slot<Handler>, linked<Op>, Op>;
  static constexpr bool is_foreign = !std::is_same_v<Executor, no_executor>;

public:
  /// For launch().
  wait_handler(Handler& handler, const Executor& ex)
    : base(&wait_handler::do_ask, {.foreign = is_foreign, .large = sizeof(wait_handler) > op_line}),
      handler_(std::move(handler)),
      work_(ex)
  {}

  /// Moves the handler into a new wait and passes the wait to `start(Op&)`. `start` takes it over
  /// unless it throws.
  template <class Start>
  static void launch(Handler& handler, const Executor& ex, Start start)
  {
    [[maybe_unused]] auto slot = asio::get_associated_cancellation_slot(handler, no_slot{});
    auto op = make_op<wait_handler>(handler, ex);
    if constexpr (has_slot<Handler>) {
      if (slot.is_connected()) op->set_link(slot.template emplace<cancel_link>());
    }
    start(*op);
    static_cast<void>(op.release());
  }

private:
  /// The wait on its way through the handler's executor, which may drop it.
  class posted_wait {
  public:
    using allocator_type = asio::associated_allocator_t<Handler>;

    posted_wait(wait_handler& op, shard& at, time_point taken_up,
                const submission& attempt) noexcept
      : op_(&op),
        attempt_(&attempt),
        at_(&at),
        core_(&core_of(at)),
        taken_up_(taken_up),
        allocator_(asio::get_associated_allocator(op.handler_))
    {}
    posted_wait(posted_wait&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)),
        attempt_(other.attempt_),
        at_(other.at_),
        core_(std::move(other.core_)),
        taken_up_(other.taken_up_),
        allocator_(other.allocator_)
    {}
    posted_wait& operator=(posted_wait&&) = delete;
    ~posted_wait()
    {
      if (!op_ || submission::give_back(attempt_, op_)) return;
      drop_wait(*op_, *at_);
      op_->destroy();
    }

    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_; }

    void operator()()
    {
      wait_handler& op = *std::exchange(op_, nullptr);
      const wait_outcome outcome = begin_wait(op, *at_, taken_up_);
      if (outcome != wait_outcome::none) op.ask(*at_, outcome);
    }

  private:
    wait_handler* op_;
    const submission* attempt_;
    shard* at_;
    intrusive_ptr<wheel_core> core_;
    time_point taken_up_;
    [[no_unique_address]] allocator_type allocator_;
  };

  static void do_ask(wait_op& base, [[maybe_unused]] shard& at, wait_request request,
                     [[maybe_unused]] time_point taken_up)
  {
    auto& self = static_cast<wait_handler&>(base);
    if constexpr (is_foreign) {
      if (request == wait_request::send()) return self.send(at, taken_up);
    }
    if (!request.is_call_or_send()) [[unlikely]] {
      if (request == wait_request::describe()) return describe_handler<Handler>(at);
      return self.destroy();
    }
    if constexpr (requires(Handler & h, Op & op) { h.take_result(op); })
      self.handler_.take_result(self);  // the handler gets more than an error
    [[maybe_unused]] const executor_work<Executor> w(std::move(self.work_));
    take_handler(&self, self.handler_)(to_error(request.outcome()));
  }

  /// Sends the wait to the handler's executor. If the executor refuses it, the next pass tries
  /// again.
  void send(shard& at, time_point taken_up)
  {
    const intrusive_ptr<wheel_core> c(&core_of(at));
    const auto dispatch = [&](const submission& attempt) {
      const Executor ex = work_.get_executor();
      asio::dispatch(ex, posted_wait(*this, at, taken_up, attempt));
    };
    switch (submit(this, dispatch)) {
      case submission_result::taken: return;
      case submission_result::refused:
        if (keep_refused_wait(*this, at)) return;
        break;
      case submission_result::dropped: break;
    }
    drop_wait(*this, at);
    destroy();
  }

  void destroy() { [[maybe_unused]] const Handler h = take_handler(this, handler_); }

  Handler handler_;
  [[no_unique_address]] executor_work<Executor> work_;
};

/// A type-erased executor, as any_completion_executor.
template <class Executor>
concept erased_executor =
  std::constructible_from<Executor, std::nothrow_t, const asio::any_io_executor&> &&
  requires(const Executor& ex)
{
  ex.target_type();
};

/// Returns a handler's executor. Throws std::bad_alloc if it is empty: a type-erased handler had no
/// memory for its type-erased executor. Asio does not throw, and an empty executor must not be
/// used.
template <class Executor>
[[nodiscard]] const Executor& require_target(const Executor& ex)
{
  if constexpr (erased_executor<Executor> && !std::is_same_v<Executor, asio::any_io_executor>)
    if (!ex) throw std::bad_alloc();
  return ex;
}

/// Returns true if `ex` is `native`, so that a function need not pass from one to the other.
template <class Executor>
[[nodiscard]] bool is_native(const Executor& ex, const asio::any_io_executor& native) noexcept
{
  if constexpr (std::is_same_v<Executor, asio::any_io_executor>) {
    return ex == native;
  } else if constexpr (erased_executor<Executor>) {
    // Without memory either is empty.
    return ex && ex == Executor(std::nothrow, native);
  } else {
    const Executor* target = native.target<Executor>();
    return target && *target == ex;
  }
}

/// True if an executor can be told not to call a function at once. any_completion_executor cannot.
template <class Executor>
inline constexpr bool never_blocks =
  !asio::execution::is_executor<Executor>::value ||
  asio::can_require_v<Executor, asio::execution::blocking_t::never_t>;

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

/// Starts a wait whose handler has an executor, and offers it `candidate`. `native` is the wheel's
/// own executor: it needs no dispatch.
template <class Op, class Handler, class Candidate, class Start>
void launch_wait(Handler& handler, const asio::any_io_executor& native, const Candidate& candidate,
                 Start start)
{
  using associated = asio::associated_executor_t<Handler, Candidate>;
  const associated& ex = asio::get_associated_executor(handler, candidate);
  static_cast<void>(require_target(ex));
  if (is_native(ex, native))
    wait_handler<Handler, no_executor, Op>::launch(handler, no_executor{}, start);
  else
    wait_handler<Handler, associated, Op>::launch(handler, ex, start);
}

/// An executor. Notes if it is the wheel's own, as this needs no dispatch.
template <class Executor>
class timer_executor {
public:
  timer_executor(const Executor& ex, const asio::any_io_executor& native)
    : executor_(ex),
      is_native_(is_native(ex, native))
  {}

  [[nodiscard]] bool is_native_to_wheel() const noexcept { return is_native_; }
  [[nodiscard]] const Executor& get(const asio::any_io_executor&) const noexcept
  {
    return executor_;
  }

private:
  Executor executor_;
  bool is_native_;
};

/// An any_io_executor is half the size of a steady_timer. Nearly always it is the wheel's own, and
/// need not be kept. Otherwise timers that are moved from one another share it.
template <>
class timer_executor<asio::any_io_executor> {
public:
  timer_executor(const asio::any_io_executor& ex, const asio::any_io_executor& native)
    : own_(ex == native ? nullptr : new shared(ex))
  {}

  [[nodiscard]] bool is_native_to_wheel() const noexcept { return !own_; }
  [[nodiscard]] const asio::any_io_executor& get(const asio::any_io_executor& native) const noexcept
  {
    return own_ ? own_->executor : native;
  }

private:
  struct shared : intrusive_ref_counter<shared>, recycled<shared> {
    explicit shared(const asio::any_io_executor& ex) : executor(ex) {}

    asio::any_io_executor executor;
  };

  intrusive_ptr<shared> own_;
};

/// The initiation of a wait, for asio::async_initiate: makes an `Op` of the handler and passes it
/// to `state.start(op, arguments...)`, or to start_wait(). A handler without an executor is called
/// through `executor`, or the wheel's if `executor` is null.
template <class Op, class State, class Executor>
struct initiate_wait {
  using executor_type = Executor;
  static constexpr bool is_of_wheel = std::is_same_v<State, wheel_core>;

  State* state;  // a pointer, so that a deferred operation can be assigned to
  const timer_executor<Executor>* executor;

  [[nodiscard]] executor_type get_executor() const noexcept { return candidate(native()); }

  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args... args) const
  {
    std::decay_t<Handler> h(std::forward<Handler>(handler));
    const auto start = [&, to = state](Op& op) {
      if constexpr (is_of_wheel)
        start_wait(*to, op, args...);
      else
        to->start(op, args...);
    };
    using handler_type = std::decay_t<Handler>;
    if constexpr (!may_use_candidate<handler_type, Executor>) {
      const asio::any_io_executor& wheels = native();
      launch_wait<Op>(h, wheels, wheels, start);
    } else if constexpr (!lacks_executor<handler_type>) {
      const asio::any_io_executor& wheels = native();
      launch_wait<Op>(h, wheels, candidate(wheels), start);
    } else if (!executor || executor->is_native_to_wheel())
      wait_handler<handler_type, no_executor, Op>::launch(h, no_executor{}, start);
    else
      wait_handler<handler_type, Executor, Op>::launch(h, executor->get(native()), start);
  }

  /// The executor that handlers are offered.
  [[nodiscard]] const Executor& candidate(const asio::any_io_executor& wheels) const noexcept
  {
    if constexpr (std::is_same_v<Executor, asio::any_io_executor>)
      if (!executor) return wheels;
    return executor->get(wheels);
  }

  [[nodiscard]] const asio::any_io_executor& native() const noexcept
  {
    if constexpr (is_of_wheel)
      return wheel_executor(*state);
    else
      return state->native();
  }
};

}  // namespace asio_wheel::detail
