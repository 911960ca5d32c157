// Boost.Beast's HTTP on streams in memory, with peers that stall, drip and vanish.
#include <fmt/core.h>
#include <asio_wheel/simulated_stream.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "support/simulated_ends.hpp"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::use_awaitable;
using boost::system::error_code;
using timed_simulated_stream = timed_stream<simulated_stream>;

namespace {

/// A session of an HTTP server: 10 s for a header, 30 s for what is between two requests.
asio::awaitable<void> serve(timed_simulated_stream stream, error_code& ended)
{
  beast::flat_buffer buffer;
  for (error_code ec;;) {
    stream.set_limits({.read_idle = 10s});
    stream.expires_after(30s);
    http::request<http::string_body> request;
    co_await http::async_read(stream, buffer, request, asio::redirect_error(use_awaitable, ec));
    if (ec) {
      ended = ec;
      co_return;
    }
    http::response<http::string_body> response(http::status::ok, 11);
    response.body() = std::string(request.target());
    response.prepare_payload();
    co_await http::async_write(stream, response, asio::redirect_error(use_awaitable, ec));
    if (ec) {
      ended = ec;
      co_return;
    }
  }
}

struct http_ends : support::simulated_ends {
  explicit http_ends(const simulated_link& link) : simulated_ends(link)
  {
    asio::co_spawn(context, serve(timed_simulated_stream(std::move(server)), ended),
                   asio::detached);
  }

  error_code ended;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(http_on_streams_in_memory)

BOOST_AUTO_TEST_CASE(a_client_asks_and_is_answered)
{
  http_ends c({.latency = 20ms, .jitter = 5ms, .bytes_per_second = 10'000, .seed = 7});
  c.client.chunk(7);
  int answers = 0;
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      beast::flat_buffer buffer;
      for (int i = 0; i < 100; ++i) {
        http::request<http::empty_body> request(http::verb::get, fmt::format("/{}", i), 11);
        co_await http::async_write(c.client, request, use_awaitable);
        http::response<http::string_body> response;
        co_await http::async_read(c.client, buffer, response, use_awaitable);
        if (response.body() == fmt::format("/{}", i)) ++answers;
      }
      c.client.close();
    },
    asio::detached);
  BOOST_TEST(c.time.advance_until_idle(1h).idle);
  BOOST_TEST(answers == 100);
  BOOST_TEST((c.ended == http::error::end_of_stream));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(a_client_that_stalls_in_the_header_is_timed_out)
{
  http_ends c({.latency = 20ms});
  c.client.inject_after_bytes(10, simulated_fault::stall);
  c.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  c.time.advance(10s + 19ms);
  BOOST_TEST(!c.ended);
  c.time.advance(2ms);
  BOOST_TEST(c.ended == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(a_client_that_drips_has_the_time_of_a_request)
{
  http_ends c({.latency = 20ms, .bytes_per_second = 1});
  c.client.chunk(1);
  const std::string request = "GET / HTTP/1.1\r\nHost: a.rather.long.name.of.a.host\r\n\r\n";
  asio::async_write(c.client, asio::buffer(request), c.written.recorder());
  c.time.advance(30s - 1ms);
  BOOST_TEST(!c.ended);
  c.time.advance(1ms);
  BOOST_TEST(c.ended == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(a_client_that_resets_ends_the_session)
{
  http_ends c({.latency = 20ms});
  c.client.inject_after_bytes(10, simulated_fault::reset);
  c.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  c.time.advance(20ms);
  BOOST_TEST(c.ended == asio::error::connection_reset);
}

BOOST_AUTO_TEST_SUITE_END()
