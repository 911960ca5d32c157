// L2 service: starting a wait with whatever handler a completion token makes.
#pragma once

#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/detail/service/timer_executor.hpp>
#include <asio_wheel/detail/service/wait_handler.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// The initiation of a wait, for asio::async_initiate: makes an `Op` of the handler and passes it
/// to `state.start(op, arguments...)`. A handler without an executor of its own is called through
/// `executor`, or the wheel's if that is null.
template <class Op, class State, class Executor>
struct initiate_wait {
  using executor_type = Executor;

  State* state;  // a pointer, so that a deferred operation can be assigned to
  const timer_executor<Executor>* executor;

  [[nodiscard]] executor_type get_executor() const noexcept
  {
    return executor ? executor->get(native()) : native();
  }

  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args... args) const
  {
    std::decay_t<Handler> h(std::forward<Handler>(handler));
    const auto start = [&, to = state](Op& op) { to->start(op, args...); };
    if (!executor || executor->is_native_to_wheel())
      launch_wait<Op>(h, native(), no_executor{}, start);
    else
      launch_wait<Op>(h, native(), executor->get(native()), start);
  }

  [[nodiscard]] const asio::any_io_executor& native() const noexcept
  {
    return state->core().executor();
  }
};

}  // namespace asio_wheel::detail
