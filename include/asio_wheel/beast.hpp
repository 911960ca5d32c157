// L3 timers: what Boost.Beast's WebSocket asks of the stream below it.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/simulated_stream.hpp>
#include <asio_wheel/timed_stream.hpp>

// clang-format off
#include ASIO_WHEEL_ASIO(append.hpp)
#include ASIO_WHEEL_ASIO(basic_stream_socket.hpp)
#include ASIO_WHEEL_ASIO(buffer.hpp)
#include ASIO_WHEEL_ASIO(compose.hpp)
// clang-format on
#include <boost/beast/core/role.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/websocket/teardown.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

// Found by argument-dependent lookup. Include this to use `websocket::stream<tcp_stream>`, also
// with asio::ssl::stream or beast::ssl_stream in between.
namespace asio_wheel {

/// Beast's function, for programs that call it without its namespace.
using boost::beast::get_lowest_layer;

/// Closes the socket of a stream that has timed out, for `beast::close_socket`.
template <class Socket>
void beast_close_socket(timed_stream<Socket>& stream)
{
  stream.close();
}

/// Ends a WebSocket connection in the manner of TCP. Blocks.
template <class Protocol, class Executor>
void teardown(boost::beast::role_type role,
              timed_stream<asio::basic_stream_socket<Protocol, Executor>>& stream, error_code& ec)
{
  boost::beast::websocket::teardown(role, stream.socket(), ec);
}

namespace detail {
/// Does with a stream what Beast does with a socket, under the stream's limits.
template <class Stream>
struct stream_teardown {
  template <class Self>
  void operator()(Self& self, error_code ec = {}, std::size_t = 0)
  {
    using asio::socket_base;
    const bool is_server = role == boost::beast::role_type::server;
    if (!bytes) {
      bytes = std::make_unique<std::array<char, 2048>>();
      if (is_server) lowest().shutdown(socket_base::shutdown_send, ec);
      if (ec) return asio::post(asio::append(std::move(self), ec));
    }
    if (!ec) return stream.async_read_some(asio::buffer(*bytes), std::move(self));
    if (ec == asio::error::eof) {
      ec.clear();
      if (!is_server) lowest().shutdown(socket_base::shutdown_send, ec);
      stream.close();
    }
    self.complete(ec);
  }

  [[nodiscard]] auto& lowest()
  {
    if constexpr (requires { stream.socket(); })
      return stream.socket();
    else
      return stream;
  }

  boost::beast::role_type role;
  Stream& stream;
  std::unique_ptr<std::array<char, 2048>> bytes;  ///< null at first
};

template <class Stream, class Handler>
void async_stream_teardown(boost::beast::role_type role, Stream& stream, Handler& handler)
{
  asio::async_compose<Handler, void(error_code)>(stream_teardown<Stream>{role, stream, nullptr},
                                                 handler, stream);
}
}  // namespace detail

/// As teardown(), without blocking, and also for simulated streams, which have no blocking form.
/// The stream's limits and expiry count, and so does the WebSocket stream's own timeout.
template <class NextLayer, class Handler>
void async_teardown(boost::beast::role_type role, timed_stream<NextLayer>& stream,
                    Handler&& handler)
{
  detail::async_stream_teardown(role, stream, handler);
}
/// As above, for a simulated stream by itself.
template <class Executor, class Handler>
void async_teardown(boost::beast::role_type role, basic_simulated_stream<Executor>& stream,
                    Handler&& handler)
{
  detail::async_stream_teardown(role, stream, handler);
}

/// For `beast::close_socket`.
template <class Executor>
void beast_close_socket(basic_simulated_stream<Executor>& stream)
{
  stream.close();
}

}  // namespace asio_wheel
