// Boost.Beast's HTTP on a tcp_stream: an expiry for each request, and clients that stop half-way.
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "support/manual_operation.hpp"
#include "support/tcp_ends.hpp"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::chrono_literals;

namespace {

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

/// A server behind `local`, and a client that says what it likes.
struct slow_client : support::tcp_ends {
  void read_header()
  {
    result = {};
    http::async_read_header(local, buffer, parser, result.recorder());
  }

  void say(std::string_view text) { asio::write(remote.socket(), asio::buffer(text)); }

  void run_ready()
  {
    context.restart();
    context.poll();
  }

  beast::flat_buffer buffer;
  http::request_parser<http::string_body> parser;
  support::result result;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(http_on_a_tcp_stream)

BOOST_AUTO_TEST_CASE(has_an_expiry_for_each_request)
{
  support::tcp_ends c;
  beast::flat_buffer at_client;
  beast::flat_buffer at_server;
  // Three requests of 20 s each take longer than any of them may.
  for (int i = 0; i < 3; ++i) {
    support::result asked;
    support::result heard;
    support::result answered;
    support::result told;
    request question(http::verb::get, "/" + std::to_string(i), 11);
    request seen;
    response answer(http::status::ok, 11);
    response got;

    c.remote.expires_after(30s);
    http::async_read(c.remote, at_server, seen, heard.recorder());
    c.time.advance(20s);
    c.local.expires_after(30s);
    http::async_write(c.local, question, asked.recorder());
    support::run_until(c.context, [&] { return !heard.pending(); });
    BOOST_TEST(!asked.error);
    BOOST_TEST(!heard.error);
    BOOST_TEST(seen.target() == "/" + std::to_string(i));

    http::async_read(c.local, at_client, got, told.recorder());
    answer.body() = "answer";
    answer.prepare_payload();
    c.remote.expires_after(30s);
    http::async_write(c.remote, answer, answered.recorder());
    support::run_until(c.context, [&] { return !told.pending() && !answered.pending(); });
    BOOST_TEST(!answered.error);
    BOOST_TEST(!told.error);
    BOOST_TEST(got.body() == "answer");
  }
  BOOST_TEST(c.elapsed() == 60s);
}

BOOST_AUTO_TEST_CASE(times_out_in_the_middle_of_a_header)
{
  slow_client c;
  c.say("GET / HTTP/1.1\r\nHost: exam");
  c.local.expires_after(100ms);
  c.read_header();
  c.ends_after(100ms, [&] { return c.result.pending(); });
  BOOST_TEST(c.result.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(bounds_a_client_that_always_says_a_little_more)
{
  slow_client c;
  c.say("GET / HTTP/1.1\r\nSlow: ");
  c.local.expires_after(100ms);
  c.read_header();
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(c.result.pending());
    c.say("z");
    c.time.advance(10ms);
  }
  BOOST_TEST(c.result.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(can_still_tell_the_client_that_it_was_too_slow)
{
  slow_client c;
  c.say("GET / HTTP/1.1\r\n");
  c.local.expires_after(100ms);
  c.read_header();
  c.time.advance(100ms);
  BOOST_TEST(c.result.error == asio::error::timed_out);

  response answer(http::status::request_timeout, 11);
  answer.keep_alive(false);
  answer.prepare_payload();
  support::result sent;
  c.local.expires_after(100ms);
  http::async_write(c.local, answer, sent.recorder());
  support::run_until(c.context, [&] { return !sent.pending(); });
  BOOST_TEST(!sent.error);
  std::string line(22, ' ');
  asio::read(c.remote.socket(), asio::buffer(line));
  BOOST_TEST(line == "HTTP/1.1 408 Request T");
}

BOOST_AUTO_TEST_CASE(goes_on_with_a_header_that_timed_out)
{
  slow_client c;
  c.say("GET /page HTTP/1.1\r\nHo");
  c.local.expires_after(100ms);
  c.read_header();
  c.time.advance(100ms);
  BOOST_TEST(c.result.error == asio::error::timed_out);

  c.say("st: h\r\n\r\n");
  c.local.expires_after(100ms);
  c.read_header();
  support::run_until(c.context, [&] { return !c.result.pending(); });
  BOOST_TEST(!c.result.error);
  BOOST_TEST(c.parser.get().target() == "/page");
  BOOST_TEST(c.parser.get()[http::field::host] == "h");
}

BOOST_AUTO_TEST_CASE(ends_an_answer_that_nobody_takes)
{
  support::tcp_ends c;
  response answer(http::status::ok, 11);
  answer.body().assign(std::size_t{64} << 20, 'x');
  answer.prepare_payload();
  support::result sent;
  c.local.set_limits({.write_stall = 10s});
  http::async_write(c.local, answer, sent.recorder());
  c.context.poll();
  c.ends_after(10s, [&] { return sent.pending(); });
  BOOST_TEST(sent.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_SUITE_END()
