// L3 timers: the handler of an async_next()'s wait.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>
#include <asio_wheel/heartbeat_options.hpp>

#include <utility>

namespace asio_wheel::detail {

/// Tells a loss from a ping: the wait ends with timed_out if the peer is lost.
template <class Handler>
struct heartbeat_handler {
  using wrapped_handler = Handler;

  void operator()(const error_code& ec)
  {
    if (ec == asio::error::timed_out)
      std::move(handler)(error_code{}, heartbeat_event::peer_lost);
    else
      std::move(handler)(ec, heartbeat_event::send_ping);
  }

  [[nodiscard]] const Handler& inner() const noexcept { return handler; }

  Handler handler;
};

}  // namespace asio_wheel::detail
