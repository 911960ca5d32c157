// asio::ssl::stream over streams in memory: a handshake that works, and peers that stall in it.
#include <array>
#include <asio_wheel/simulated_stream.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "support/outcome.hpp"
#include "support/simulated_ends.hpp"
#include "tls/tls_ends.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::ssl::stream_base;

namespace {

struct tls_in_memory : support::tls_rules, support::simulated_ends {
  explicit tls_in_memory(const simulated_link& link) : simulated_ends(link) {}

  using stream = asio::ssl::stream<timed_stream<simulated_stream>>;

  void start_handshakes()
  {
    at_client.async_handshake(stream_base::client, client_shook.recorder());
    at_server.async_handshake(stream_base::server, server_shook.recorder());
  }

  stream at_client{std::move(client), client_rules};
  stream at_server{std::move(server), server_rules};
  support::outcome client_shook;
  support::outcome server_shook;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(tls_on_streams_in_memory)

BOOST_AUTO_TEST_CASE(shakes_hands_and_carries_data)
{
  tls_in_memory c({.latency = 20ms, .jitter = 5ms, .seed = 7});
  c.start_handshakes();
  c.time.advance(1s);
  BOOST_TEST_REQUIRE(c.client_shook.succeeded());
  BOOST_TEST_REQUIRE(c.server_shook.succeeded());
  const std::string sent(100'000, 'x');
  std::string got(sent.size(), ' ');
  support::result read, written;
  asio::async_write(c.at_client, asio::buffer(sent), written.recorder());
  asio::async_read(c.at_server, asio::buffer(got), read.recorder());
  c.time.advance(1min);
  BOOST_TEST(written.succeeded(sent.size()));
  BOOST_TEST(read.succeeded(sent.size()));
  BOOST_TEST((got == sent));
}

BOOST_AUTO_TEST_CASE(times_out_in_a_handshake_that_stalls_after_any_number_of_bytes)
{
  for (const std::size_t n : {0U, 1U, 5U, 100U, 200U}) {
    tls_in_memory c({.latency = 20ms});
    c.at_client.next_layer().socket().inject_after_bytes(n, simulated_fault::stall);
    c.at_server.next_layer().expires_after(10s);
    c.start_handshakes();
    c.time.advance(10s - 1ms);
    BOOST_TEST(c.server_shook.pending());
    c.time.advance(1ms);
    BOOST_TEST(c.server_shook.calls == 1);
    BOOST_TEST(c.server_shook.error == asio::error::timed_out);
  }
}

BOOST_AUTO_TEST_CASE(times_out_if_the_server_vanishes_before_it_answers)
{
  tls_in_memory c({.latency = 20ms});
  c.at_server.next_layer().socket().drop_after(0);
  c.at_client.async_handshake(stream_base::client, timeout_after(5s, c.client_shook.recorder()));
  c.time.advance(5s - 1ms);
  BOOST_TEST(c.client_shook.pending());
  c.time.advance(2ms);
  BOOST_TEST(c.client_shook.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_SUITE_END()
