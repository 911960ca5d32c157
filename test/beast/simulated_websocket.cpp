// Boost.Beast's WebSocket on streams in memory, with pings and a peer that vanishes.
#include <asio_wheel/beast.hpp>
#include <asio_wheel/simulated_stream.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/simulated_ends.hpp"
#include "support/websocket_story.hpp"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::use_awaitable;
using boost::system::error_code;
using timed_simulated_stream = timed_stream<simulated_stream>;

namespace {

/// Two ends for a websocket_story.
struct story_ends : support::wheel_in_virtual_time {
  explicit story_ends(const simulated_link& link)
  {
    auto ends = simulated_pair(wheel, link);
    local = timed_simulated_stream(std::move(ends.first));
    remote = timed_simulated_stream(std::move(ends.second));
  }

  timed_simulated_stream local{context};
  timed_simulated_stream remote{context};
};

struct story : story_ends, support::websocket_story<timed_simulated_stream> {
  story()
    : story_ends({.send_buffer = 10'000}),
      websocket_story(*this, std::move(local), std::move(remote))
  {}
};

}  // namespace

BOOST_AUTO_TEST_SUITE(websocket_on_streams_in_memory)

BOOST_FIXTURE_TEST_CASE(a_websocket_opens_echoes_and_closes, story)
{
  websocket_story::opens_echoes_and_closes();
}

BOOST_FIXTURE_TEST_CASE(a_websocket_ends_a_read_that_is_idle, story)
{
  websocket_story::ends_a_read_that_is_idle();
}

BOOST_FIXTURE_TEST_CASE(a_websocket_ends_a_write, story)
{
  websocket_story::ends_a_write();
}

BOOST_FIXTURE_TEST_CASE(a_websocket_ends_a_close, story)
{
  websocket_story::ends_a_close();
}

BOOST_FIXTURE_TEST_CASE(a_websocket_ends_a_handshake, story)
{
  websocket_story::ends_a_handshake();
}

BOOST_AUTO_TEST_CASE(a_websocket_closes_on_bare_streams)
{
  support::simulated_ends c({.latency = 20ms});
  websocket::stream<simulated_stream> client(std::move(c.client));
  websocket::stream<simulated_stream> server(std::move(c.server));
  error_code at_server;
  error_code at_client;
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      co_await server.async_accept(use_awaitable);
      beast::flat_buffer buffer;
      co_await server.async_read(buffer, asio::redirect_error(use_awaitable, at_server));
    },
    asio::detached);
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      co_await client.async_handshake("h", "/", use_awaitable);
      co_await client.async_close(websocket::close_code::normal,
                                  asio::redirect_error(use_awaitable, at_client));
    },
    asio::detached);
  c.time.advance(1min);
  BOOST_TEST((at_server == websocket::error::closed));
  BOOST_TEST(!at_client);
  BOOST_TEST(!client.next_layer().is_open());
  BOOST_TEST(!server.next_layer().is_open());
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(pings_find_a_websocket_peer_that_vanished)
{
  support::simulated_ends c({.latency = 20ms});
  websocket::stream<simulated_stream> client(std::move(c.client));
  websocket::stream<simulated_stream> server(std::move(c.server));
  heartbeat beat(c.wheel, {.interval = 10s, .max_missed = 2});
  error_code ended;
  int pings = 0;
  client.control_callback([&](websocket::frame_type, beast::string_view) { beat.received(); });
  // The server reads, and so answers pings.
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      co_await server.async_accept(use_awaitable);
      beast::flat_buffer buffer;
      error_code ec;
      co_await server.async_read(buffer, asio::redirect_error(use_awaitable, ec));
    },
    asio::detached);
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      co_await client.async_handshake("h", "/", use_awaitable);
      beast::flat_buffer buffer;
      co_await client.async_read(buffer, beat.guard(asio::redirect_error(use_awaitable, ended)));
    },
    asio::detached);
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      while (co_await beat.async_next(use_awaitable) == heartbeat_event::send_ping) {
        ++pings;
        co_await client.async_ping({}, use_awaitable);
        beat.sent();
      }
    },
    asio::detached);
  c.time.advance(5min);
  BOOST_TEST(!ended);
  BOOST_TEST(pings >= 20);
  server.next_layer().inject(simulated_fault::drop);
  c.time.advance(1min);
  BOOST_TEST(ended == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(a_limit_of_the_stream_ends_a_close)
{
  support::simulated_ends c;
  websocket::stream<timed_simulated_stream> client(timed_simulated_stream(std::move(c.client)));
  websocket::stream<timed_simulated_stream> server(timed_simulated_stream(std::move(c.server)));
  client.next_layer().set_limits({.total = 60s});
  error_code closed;
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      co_await server.async_accept(use_awaitable);
      beast::flat_buffer buffer;
      co_await server.async_read(buffer, use_awaitable);
    },
    asio::detached);
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      co_await client.async_handshake("h", "/", use_awaitable);
      // The peer's close frame comes, and then nothing.
      server.next_layer().socket().inject_after_bytes(4, simulated_fault::drop);
      co_await client.async_close(websocket::close_code::normal,
                                  asio::redirect_error(use_awaitable, closed));
    },
    asio::detached);
  c.time.advance(59s);
  BOOST_TEST(!closed);
  c.time.advance(2s);
  BOOST_TEST(closed == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(a_teardown_without_a_connection_does_not_complete_inline)
{
  support::simulated_ends c;
  c.client.close();
  error_code ended;
  async_teardown(beast::role_type::server, c.client, [&](error_code ec) { ended = ec; });
  BOOST_TEST(!ended);
  c.time.advance(1s);
  BOOST_TEST(!!ended);
}

BOOST_AUTO_TEST_SUITE_END()
