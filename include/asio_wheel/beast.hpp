// L3 roof: what Boost.Beast's WebSocket asks of the stream below it.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/timed_stream.hpp>

#include ASIO_WHEEL_ASIO(basic_stream_socket.hpp)
#include <boost/beast/core/role.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/websocket/teardown.hpp>

#include <utility>

// Found by argument-dependent lookup. Include this to use `websocket::stream<tcp_stream>`, or one
// with asio::ssl::stream or beast::ssl_stream in between.
namespace asio_wheel {

/// Beast's own, for programs that call it without its namespace.
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

/// The same without blocking. The WebSocket stream's own timeout bounds it.
template <class Protocol, class Executor, class Handler>
void async_teardown(boost::beast::role_type role,
                    timed_stream<asio::basic_stream_socket<Protocol, Executor>>& stream,
                    Handler&& handler)
{
  boost::beast::websocket::async_teardown(role, stream.socket(), std::forward<Handler>(handler));
}

}  // namespace asio_wheel
