// L2 engine: a wait with its handler, from the initiation to the call.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

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
  // As make_error_code(), which g++ does not always inline.
  if (outcome == wait_outcome::cancelled)
    return {asio::error::operation_aborted, asio::error::get_system_category()};
  if (outcome == wait_outcome::timed_out) return asio::error::timed_out;
  return outcome == wait_outcome::repeats ? error_code() : too_many_pending();
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

/// A `Wait` on its way through its handler's executor, which may drop it.
template <class Wait>
class posted_wait {
public:
  using allocator_type = typename Wait::allocator_type;

  posted_wait(Wait& op, shard& at, time_point taken_up, const submission& attempt) noexcept
    : op_(&op),
      attempt_(&attempt),
      at_(&at),
      core_(&core_of(at)),
      taken_up_(taken_up),
      allocator_(op.get_allocator())
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
    Wait& op = *std::exchange(op_, nullptr);
    const wait_outcome outcome = begin_wait(op, *at_, taken_up_);
    if (outcome != wait_outcome::none) op.ask(*at_, outcome);
  }

private:
  Wait* op_;
  const submission* attempt_;
  shard* at_;
  intrusive_ptr<wheel_core> core_;
  time_point taken_up_;
  [[no_unique_address]] allocator_type allocator_;
};

/// A wait was passed to its executor. If the executor has refused the wait, the next pass tries
/// again.
template <class Wait>
void finish_sending(Wait& op, shard& at, submission_result r)
{
  switch (r) {
    case submission_result::taken: return;
    case submission_result::refused:
      if (keep_refused_wait(op, at)) return;
      break;
    case submission_result::dropped: break;
  }
  drop_wait(op, at);
  op.destroy();
}

/// An `Op` of wait_op.hpp with a handler. Keeps work outstanding on the handler's `Executor` until
/// it calls the handler there. no_executor stands for the wheel's own.
template <class Handler, class Executor, class Op>
class wait_handler final : public std::conditional_t<has_slot<Handler>, linked<Op>, Op> {
  using base = std::conditional_t<has_slot<Handler>, linked<Op>, Op>;
  static constexpr bool is_foreign = !std::is_same_v<Executor, no_executor>;

public:
  using allocator_type = asio::associated_allocator_t<Handler>;

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

  [[nodiscard]] allocator_type get_allocator() const noexcept
  {
    return asio::get_associated_allocator(handler_);
  }

  void destroy() { [[maybe_unused]] const Handler h = take_handler(this, handler_); }

private:
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

  /// Sends the wait to the handler's executor.
  void send(shard& at, time_point taken_up)
  {
    const intrusive_ptr<wheel_core> c(&core_of(at));
    const auto dispatch = [&](const submission& attempt) {
      const Executor ex = work_.get_executor();
      asio::dispatch(ex, posted_wait(*this, at, taken_up, attempt));
    };
    finish_sending(*this, at, submit(this, dispatch));
  }

  Handler handler_;
  [[no_unique_address]] executor_work<Executor> work_;
};

}  // namespace asio_wheel::detail
