// L3 timers: the handler of an async_tick()'s wait.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/timers/interval_state.hpp>

#include <utility>

namespace asio_wheel::detail {

/// Tells the user's handler which tick it was.
template <class Handler>
struct tick_handler {
  /// The wait calls this right before the handler.
  void take_result(const tick_wait_op& op) noexcept { time = op.tick.time(); }

  void operator()(const error_code& ec) { std::move(handler)(ec, ec ? time_point{} : time); }

  Handler handler;
  intrusive_ptr<interval_state> owner;  ///< while the wait is pending
  time_point time{};
};

}  // namespace asio_wheel::detail

/// Its associated objects are the handler's.
template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct asio_wheel::asio::associator<Associator, asio_wheel::detail::tick_handler<Handler>,
                                    DefaultCandidate> : Associator<Handler, DefaultCandidate> {
  static auto get(const asio_wheel::detail::tick_handler<Handler>& h) noexcept
  {
    return Associator<Handler, DefaultCandidate>::get(h.handler);
  }
  static auto get(const asio_wheel::detail::tick_handler<Handler>& h,
                  const DefaultCandidate& c) noexcept
  {
    return Associator<Handler, DefaultCandidate>::get(h.handler, c);
  }
};
