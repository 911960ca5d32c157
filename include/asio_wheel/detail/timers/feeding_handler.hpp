// L3 timers: the handler of a stream's operation that feeds a heartbeat.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// The handler of a read or a write. Bytes that have moved are a sign of life.
template <class Handler>
struct feeding_handler {
  void operator()(const error_code& ec, std::size_t n)
  {
    if (n != 0) of_stream->pass_on(what);
    std::move(handler)(ec, n);
  }

  Handler handler;
  guard_ptr of_stream;
  peer_activity what;
};

}  // namespace asio_wheel::detail

/// Its associated objects are the handler's.
template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct asio_wheel::asio::associator<Associator, asio_wheel::detail::feeding_handler<Handler>,
                                    DefaultCandidate> : Associator<Handler, DefaultCandidate> {
  static auto get(const asio_wheel::detail::feeding_handler<Handler>& h) noexcept
  {
    return Associator<Handler, DefaultCandidate>::get(h.handler);
  }
  static auto get(const asio_wheel::detail::feeding_handler<Handler>& h,
                  const DefaultCandidate& c) noexcept
  {
    return Associator<Handler, DefaultCandidate>::get(h.handler, c);
  }
};
