// asio::ssl::stream over a tcp_stream: every step of TLS has a deadline.
#include <array>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>

#include "support/manual_operation.hpp"
#include "tls/tls_ends.hpp"

namespace asio = boost::asio;
using asio::ssl::stream_base;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

/// What an operation that passes on nothing but an error has said.
struct outcome {
  [[nodiscard]] bool pending() const { return calls == 0; }
  [[nodiscard]] auto recorder()
  {
    return [this](error_code ec) {
      ++calls;
      error = ec;
    };
  }

  int calls = 0;
  error_code error;
};

struct conversation : support::tls_ends {
  std::array<char, 64> room{};
  support::result read;
  support::result written;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(tls_on_a_tcp_stream)

BOOST_AUTO_TEST_CASE(times_a_handshake_out_that_nobody_answers)
{
  support::tls_ends c;
  outcome handshake;
  c.client.next_layer().expires_after(100ms);
  c.client.async_handshake(stream_base::client, handshake.recorder());
  c.ends_after(100ms, [&] { return handshake.pending(); });
  BOOST_TEST(handshake.error == asio::error::timed_out);
  BOOST_TEST(c.client.lowest_layer().is_open());
}

BOOST_AUTO_TEST_CASE(times_a_handshake_out_in_the_middle)
{
  support::tls_ends c;
  outcome handshake;
  c.server.next_layer().expires_after(100ms);
  c.server.async_handshake(stream_base::server, handshake.recorder());
  // The head of a record that never comes.
  asio::write(c.client.next_layer().socket(), asio::buffer("\x16\x03\x01\x02\x00\x01", 6));
  c.ends_after(100ms, [&] { return handshake.pending(); });
  BOOST_TEST(handshake.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(times_a_read_out_and_reads_on)
{
  conversation c;
  c.shake_hands();
  c.client.next_layer().expires_after(100ms);
  c.client.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.ends_after(100ms, [&] { return c.read.pending(); });
  BOOST_TEST(c.read.failed(asio::error::timed_out));

  c.read = {};
  c.client.next_layer().expires_after(100ms);
  c.client.async_read_some(asio::buffer(c.room), c.read.recorder());
  asio::async_write(c.server, asio::buffer("late", 4), c.written.recorder());
  support::run_until(c.context, [&] { return !c.read.pending(); });
  BOOST_TEST(c.read.succeeded(4));
  BOOST_TEST(std::string(c.room.data(), 4) == "late");
}

// OpenSSL has decrypted a whole record, and the next read takes the rest of it. Asio posts such a
// read by an empty one on the stream below.
BOOST_AUTO_TEST_CASE(loses_nothing_that_was_decrypted_before_a_passed_expiry)
{
  conversation c;
  c.shake_hands();
  asio::async_write(c.server, asio::buffer("0123456789abcde", 15), c.written.recorder());
  std::string received;
  constexpr std::size_t n = 5;
  while (received.size() < 3 * n) {
    if (received.size() == n) c.client.next_layer().expires_after(-1ms);
    c.read = {};
    c.client.async_read_some(asio::buffer(c.room, n), c.read.recorder());
    support::run_until(c.context, [&] { return !c.read.pending(); });
    BOOST_REQUIRE(c.read.succeeded(n));
    received.append(c.room.data(), n);
  }
  BOOST_TEST(received == "0123456789abcde");
}

BOOST_AUTO_TEST_CASE(ends_a_read_that_is_idle)
{
  conversation c;
  c.shake_hands();
  c.client.next_layer().set_limits({.read_idle = 1min});
  for (int i = 0; i < 3; ++i) {
    c.read = c.written = {};
    c.client.async_read_some(asio::buffer(c.room), c.read.recorder());
    c.time.advance(50s);
    asio::async_write(c.server, asio::buffer("ping", 4), c.written.recorder());
    support::run_until(c.context, [&] { return !c.read.pending(); });
    BOOST_TEST(c.read.succeeded(4));
  }
  c.read = {};
  c.client.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.ends_after(1min, [&] { return c.read.pending(); });
  BOOST_TEST(c.read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(shuts_down_in_order)
{
  conversation c;
  c.shake_hands();
  outcome at_client;
  outcome at_server;
  c.client.next_layer().expires_after(30s);
  c.server.next_layer().expires_after(30s);
  c.server.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.client.async_shutdown(at_client.recorder());
  support::run_until(c.context, [&] { return !c.read.pending(); });
  BOOST_TEST(c.read.failed(asio::error::eof));
  BOOST_TEST(at_client.pending());
  c.server.async_shutdown(at_server.recorder());
  support::run_until(c.context, [&] { return !at_client.pending() && !at_server.pending(); });
  BOOST_TEST(!at_client.error);
  BOOST_TEST(!at_server.error);
}

BOOST_AUTO_TEST_CASE(times_a_shutdown_out_that_nobody_answers)
{
  support::tls_ends c;
  c.shake_hands();
  outcome shutdown;
  c.client.next_layer().expires_after(100ms);
  c.client.async_shutdown(shutdown.recorder());
  c.ends_after(100ms, [&] { return shutdown.pending(); });
  BOOST_TEST(shutdown.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_SUITE_END()
