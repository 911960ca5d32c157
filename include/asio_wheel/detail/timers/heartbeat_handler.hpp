// L3 timers: the handler of an async_next()'s wait.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/heartbeat_options.hpp>

#include <utility>

namespace asio_wheel::detail {

/// Tells a loss from a ping: the wait ends with timed_out if the peer is lost.
template <class Handler>
struct heartbeat_handler {
  void operator()(const error_code& ec)
  {
    if (ec == asio::error::timed_out)
      std::move(handler)(error_code{}, heartbeat_event::peer_lost);
    else
      std::move(handler)(ec, heartbeat_event::send_ping);
  }

  Handler handler;
};

}  // namespace asio_wheel::detail

/// Its associated objects are the handler's.
template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct asio_wheel::asio::associator<Associator, asio_wheel::detail::heartbeat_handler<Handler>,
                                    DefaultCandidate> : Associator<Handler, DefaultCandidate> {
  static auto get(const asio_wheel::detail::heartbeat_handler<Handler>& h) noexcept
  {
    return Associator<Handler, DefaultCandidate>::get(h.handler);
  }
  static auto get(const asio_wheel::detail::heartbeat_handler<Handler>& h,
                  const DefaultCandidate& c) noexcept
  {
    return Associator<Handler, DefaultCandidate>::get(h.handler, c);
  }
};
