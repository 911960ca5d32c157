// L3 timers: the handler of an async_tick()'s wait.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>
#include <asio_wheel/detail/timers/interval_state.hpp>

#include <utility>

namespace asio_wheel::detail {

/// Tells the user's handler which tick it was.
template <class Handler>
struct tick_handler {
  using wrapped_handler = Handler;

  /// The wait calls this right before the handler.
  void take_result(const tick_wait_op& op) noexcept { time = op.tick.time(); }

  void operator()(const error_code& ec) { std::move(handler)(ec, ec ? time_point{} : time); }

  [[nodiscard]] const Handler& inner() const noexcept { return handler; }

  Handler handler;
  intrusive_ptr<interval_state> owner;  ///< while the wait is pending
  time_point time{};
};

}  // namespace asio_wheel::detail
