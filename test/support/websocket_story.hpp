// What a WebSocket does on any stream below it, told once for all of them.
#pragma once

#include <array>
#include <asio_wheel.hpp>
#include <asio_wheel/beast.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <tuple>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/tcp_ends.hpp"

// GCC 12 takes the two halves of a coroutine's frame allocation for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace support {

/// A client and a server, each on a stream of its own that `ends` has connected.
template <class Stream>
class websocket_story {
public:
  using socket = boost::beast::websocket::stream<Stream>;

  websocket_story(wheel_in_virtual_time& ends, Stream client, Stream server)
    : ends_(ends),
      client_(std::move(client)),
      server_(std::move(server))
  {}

  void opens_echoes_and_closes()
  {
    run(serve(), ask());
    // Each has seen the other's end, and has torn its connection down.
    BOOST_TEST(reason_.code == boost::beast::websocket::close_code::normal);
    BOOST_TEST(!lowest(client_).socket().is_open());
    BOOST_TEST(!lowest(server_).socket().is_open());
    BOOST_TEST(ends_.wheel.pending() == 0U);
  }

  void ends_a_read_that_is_idle()
  {
    using namespace std::chrono_literals;
    run(accept(), open());
    lowest(server_).set_limits({.read_idle = 1min});
    result idle;
    boost::beast::flat_buffer buffer;
    server_.async_read(buffer, idle.recorder());
    ends_.context.restart();
    ends_.context.poll();
    ends_.time.advance(1min - 1ms);
    BOOST_TEST(idle.pending());
    ends_.time.advance(1ms);
    BOOST_TEST(idle.failed(boost::asio::error::timed_out));
    BOOST_TEST(lowest(server_).socket().is_open());
  }

  /// Deadlines on the WebSocket's own operations. Beast stores their slots, so these have to be
  /// Asio's. `with` adds a deadline of one second to a token.
  template <class With>
  void ends_by(With with, boost::system::error_code expected)
  {
    using namespace std::chrono_literals;
    run(accept(), open());
    result idle;
    boost::beast::flat_buffer buffer;
    server_.async_read(buffer, with(idle.recorder()));
    advance_past(1s, idle);
    BOOST_TEST(idle.failed(expected));
    BOOST_TEST(ends_.wheel.pending() == 0U);
  }

  /// The peer takes nothing.
  void ends_a_write()
  {
    using namespace std::chrono_literals;
    run(accept(), open());
    const std::string much(32U << 20U, 'x');
    result write;
    client_.async_write(boost::asio::buffer(much), asio_wheel::timeout_after(1s, write.recorder()));
    advance_past(1s, write);
    BOOST_TEST(write.failed(boost::asio::error::timed_out));
  }

  /// The peer does not answer.
  void ends_a_close()
  {
    using namespace std::chrono_literals;
    run(accept(), open());
    result close;
    client_.async_close(boost::beast::websocket::close_code::normal,
                        asio_wheel::timeout_after(
                          1s, [&](boost::system::error_code ec) { close.recorder()(ec, 0); }));
    advance_past(1s, close);
    BOOST_TEST(close.failed(boost::asio::error::timed_out));
  }

  void ends_a_handshake()
  {
    using namespace std::chrono_literals;
    result handshake;
    client_.async_handshake("localhost", "/", asio_wheel::timeout_after(1s, [&](auto ec) {
                              handshake.recorder()(ec, 0);
                            }));
    advance_past(1s, handshake);
    BOOST_TEST(handshake.failed(boost::asio::error::timed_out));
  }

  /// What is read in time keeps its result, message after message.
  void reads_in_time_under_a_deadline()
  {
    using namespace std::chrono_literals;
    using asio_wheel::timeout_after;
    run(accept(), open());
    for (int i = 0; i < 3; ++i) {
      result read;
      result written;
      boost::beast::flat_buffer buffer;
      server_.async_read(buffer, timeout_after(1s, read.recorder()));
      client_.async_write(boost::asio::buffer("hello", 5), timeout_after(1s, written.recorder()));
      run_to_end(ends_.context);
      BOOST_TEST(read.succeeded(5));
      BOOST_TEST(written.succeeded(5));
    }
    BOOST_TEST(ends_.wheel.pending() == 0U);
  }

  /// Those are in real time: the WebSocket has a steady_timer of its own for them.
  void has_timeouts_of_its_own()
  {
    using namespace boost::beast;
    using namespace std::chrono_literals;
    server_.set_option(
      websocket::stream_base::timeout{20ms, websocket::stream_base::none(), false});
    error_code accepted;
    server_.async_accept([&](error_code ec) { accepted = ec; });
    run_until(ends_.context, [&] { return accepted.failed(); });
    BOOST_TEST((accepted == error::timeout));
    BOOST_TEST(!lowest(server_).socket().is_open());
  }

private:
  using awaitable = boost::asio::awaitable<void>;
  static constexpr auto use_awaitable = boost::asio::use_awaitable;

  void advance_past(std::chrono::seconds delay, const result& r)
  {
    ends_.context.restart();
    ends_.context.poll();
    ends_.time.advance(delay - std::chrono::milliseconds(1));
    BOOST_TEST(r.pending());
    ends_.time.advance(std::chrono::milliseconds(2));
  }

  static auto& lowest(socket& w) { return boost::beast::get_lowest_layer(w); }

  void run(awaitable server, awaitable client)
  {
    const auto rethrow = [](std::exception_ptr thrown) {
      if (thrown) std::rethrow_exception(thrown);
    };
    boost::asio::co_spawn(ends_.context, std::move(server), rethrow);
    boost::asio::co_spawn(ends_.context, std::move(client), rethrow);
    run_to_end(ends_.context);
  }

  awaitable accept()
  {
    lowest(server_).expires_after(std::chrono::seconds(30));
    co_await server_.async_accept(use_awaitable);
    lowest(server_).expires_never();
  }

  awaitable open()
  {
    lowest(client_).expires_after(std::chrono::seconds(30));
    co_await client_.async_handshake("localhost", "/", use_awaitable);
    lowest(client_).expires_never();
  }

  awaitable serve()
  {
    co_await accept();
    while (true) {
      boost::beast::flat_buffer message;
      const auto [ec, size] =
        co_await server_.async_read(message, boost::asio::as_tuple(use_awaitable));
      if (ec) {
        BOOST_TEST((ec == boost::beast::websocket::error::closed));
        break;
      }
      co_await server_.async_write(message.data(), use_awaitable);
    }
    reason_ = server_.reason();
    lowest(server_).close();
  }

  awaitable ask()
  {
    co_await open();
    for (const std::string word : {"one", "two", "three"}) {
      boost::beast::flat_buffer answer;
      lowest(client_).expires_after(std::chrono::seconds(30));
      co_await client_.async_write(boost::asio::buffer(word), use_awaitable);
      co_await client_.async_read(answer, use_awaitable);
      BOOST_TEST(boost::beast::buffers_to_string(answer.data()) == word);
    }
    co_await client_.async_close(boost::beast::websocket::close_code::normal, use_awaitable);
    lowest(client_).close();
  }

  wheel_in_virtual_time& ends_;
  socket client_;
  socket server_;
  boost::beast::websocket::close_reason reason_;
};

}  // namespace support
