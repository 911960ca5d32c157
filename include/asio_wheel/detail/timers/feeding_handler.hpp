// L3 timers: the handler of a stream's operation that feeds a heartbeat.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>

#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// The handler of a read or a write. Bytes that have moved are a sign of life.
template <class Handler>
struct feeding_handler {
  using wrapped_handler = Handler;

  void operator()(const error_code& ec, std::size_t n)
  {
    if (n != 0) of_stream->pass_on(what);
    std::move(handler)(ec, n);
  }

  [[nodiscard]] const Handler& inner() const noexcept { return handler; }

  Handler handler;
  guard_ptr of_stream;
  peer_activity what;
};

}  // namespace asio_wheel::detail
