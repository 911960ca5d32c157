// L2 engine: the initiation of a wait, for each kind of handler and executor.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/context_gate.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// Starts a wait whose handler is to be called through `ex`, which is not the wheel's executor.
template <class Op, class Handler, class Executor, class Start>
void launch_foreign(Handler& handler, const Executor& ex, const asio::any_io_executor& native,
                    Start start)
{
  if (auto* const c = context_elsewhere(ex, context_of(native))) [[unlikely]]
    gated_wait<Handler, Executor, Op>::launch(handler, ex, gate_of(*c), start);
  else
    wait_handler<Handler, Executor, Op>::launch(handler, ex, start);
}

/// Starts a wait whose handler has an executor, and offers it `candidate`. `native` is the wheel's
/// own executor: it needs no dispatch.
template <class Op, class Handler, class Candidate, class Start>
void launch_wait(Handler& handler, const asio::any_io_executor& native, const Candidate& candidate,
                 Start start)
{
  using associated = asio::associated_executor_t<Handler, Candidate>;
  // A copy: the handler may return a reference to what it has, and is moved before the wait is
  // made.
  const associated ex = asio::get_associated_executor(handler, candidate);
  static_cast<void>(require_target(ex));
  if (is_native(ex, native))
    wait_handler<Handler, no_executor, Op>::launch(handler, no_executor{}, start);
  else
    launch_foreign<Op>(handler, ex, native, start);
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

  [[nodiscard]] executor_type get_executor() const noexcept
  {
    return candidate(context_executor());
  }

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
      const asio::any_io_executor& wheels = context_executor();
      launch_wait<Op>(h, wheels, wheels, start);
    } else if constexpr (!lacks_executor<handler_type>) {
      const asio::any_io_executor& wheels = context_executor();
      launch_wait<Op>(h, wheels, candidate(wheels), start);
    } else if (!executor || executor->is_native_to_wheel())
      wait_handler<handler_type, no_executor, Op>::launch(h, no_executor{}, start);
    else
      launch_foreign<Op>(h, executor->get(context_executor()), context_executor(), start);
  }

  /// The executor that handlers are offered.
  [[nodiscard]] const Executor& candidate(const asio::any_io_executor& wheels) const noexcept
  {
    if constexpr (std::is_same_v<Executor, asio::any_io_executor>)
      if (!executor) return wheels;
    return executor->get(wheels);
  }

  [[nodiscard]] const asio::any_io_executor& context_executor() const noexcept
  {
    if constexpr (is_of_wheel)
      return wheel_executor(*state);
    else
      return state->context_executor();
  }
};

}  // namespace asio_wheel::detail
