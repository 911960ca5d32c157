// timed_stream::feed(): what is read and written keeps heartbeats and watchdogs quiet.
#include <array>
#include <asio_wheel/heartbeat.hpp>
#include <asio_wheel/simulated_stream.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <asio_wheel/wheel_watchdog.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/outcome.hpp"
#include "support/socket_pair.hpp"
#include "support/tcp_ends.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

/// Two ends of a simulated connection; the first is a timed_stream.
struct fed_connection : support::wheel_in_virtual_time {
  fed_connection()
  {
    auto [a, b] = simulated_pair(wheel);
    stream.emplace(std::move(a));
    peer.emplace(std::move(b));
  }

  /// The peer says something, which the stream reads.
  void receive()
  {
    peer->async_write_some(asio::buffer("x", 1), [](error_code, std::size_t) {});
    std::size_t read = 0;
    stream->async_read_some(asio::buffer(bytes), [&](error_code, std::size_t n) { read = n; });
    time.advance(0s);
    BOOST_TEST(read == 1U);
  }

  void send()
  {
    std::size_t written = 0;
    stream->async_write_some(asio::buffer("x", 1), [&](error_code, std::size_t n) { written = n; });
    time.advance(0s);
    BOOST_TEST(written == 1U);
  }

  std::optional<timed_stream<simulated_stream>> stream;
  std::optional<simulated_stream> peer;
  std::array<char, 16> bytes{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(timed_stream_feed)

BOOST_FIXTURE_TEST_CASE(a_read_touches_a_watchdog_and_a_write_does_not, fed_connection)
{
  wheel_watchdog dog(wheel, 10s);
  stream->feed(dog);
  bool expired = false;
  dog.async_expired([&](error_code ec) { expired = !ec; });
  time.advance(8s);
  receive();
  time.advance(8s);
  BOOST_TEST(!expired);
  send();
  time.advance(2s);
  BOOST_TEST(expired);
}

BOOST_FIXTURE_TEST_CASE(a_heartbeat_need_not_ping_while_both_ways_are_busy, fed_connection)
{
  heartbeat beat(wheel, {.interval = 10s, .max_missed = 2});
  stream->feed(beat);
  int pings = 0;
  beat.async_next([&](error_code ec, heartbeat_event e) {
    BOOST_TEST((!ec && e == heartbeat_event::send_ping));
    ++pings;
  });
  for (int i = 0; i < 5; ++i) {
    time.advance(8s);
    receive();
    send();
  }
  BOOST_TEST(pings == 0);
  time.advance(5s);
  send();  // nothing is received any more
  time.advance(5s);
  BOOST_TEST(pings == 1);
}

BOOST_FIXTURE_TEST_CASE(feeds_under_a_deadline_as_without, fed_connection)
{
  wheel_watchdog dog(wheel, 10s);
  stream->feed(dog);
  stream->expires_after(1h);
  stream->set_limits({.read_idle = 1min, .write_stall = 1min, .total = 1h});
  bool expired = false;
  dog.async_expired([&](error_code ec) { expired = !ec; });
  for (int i = 0; i < 5; ++i) {
    time.advance(8s);
    receive();
  }
  BOOST_TEST(!expired);
}

BOOST_FIXTURE_TEST_CASE(without_a_deadline_nothing_waits_and_nothing_ends_it, support::tcp_ends)
{
  wheel_watchdog dog(wheel, 10s);
  local.feed(dog);
  std::array<char, 16> bytes{};
  support::result read;
  local.async_read_some(asio::buffer(bytes), read.recorder());
  BOOST_TEST(wheel.pending() == 0U);
  BOOST_TEST(wheel.stats().started == 0U);
  BOOST_TEST(wheel.cancel_all() == 0U);

  // Beside one that its deadline ends.
  std::array<char, 16> later{};
  support::result second;
  local.expires_after(5s);
  local.async_read_some(asio::buffer(later), second.recorder());
  local.expires_never();
  time.advance(5s);
  BOOST_TEST(second.failed(asio::error::timed_out));
  BOOST_TEST(wheel.pending() == 0U);
  BOOST_TEST(wheel.cancel_all() == 0U);

  time.advance(24h * 365);
  BOOST_TEST(read.pending());
  asio::write(remote.socket(), asio::buffer("x", 1));
  while (context.poll()) {
  }
  BOOST_TEST(read.succeeded(1));
}

BOOST_AUTO_TEST_CASE(without_a_deadline_a_full_wheel_refuses_nothing)
{
  wheel_options options;
  options.max_pending = 1;
  support::context_with_wheel c(options);
  support::pair_socket peer(c.context);
  timed_stream<support::pair_socket> fed(c.context);
  support::connect_pair(fed.socket(), peer);
  wheel_watchdog dog(c.wheel, 10s);
  fed.feed(dog);
  support::outcome held;
  c.wheel.async_wait(1h, held.recorder());
  support::result write;
  fed.async_write_some(asio::buffer("x", 1), write.recorder());
  std::array<char, 16> bytes{};
  support::result read;
  fed.async_read_some(asio::buffer(bytes), read.recorder());
  c.context.poll();
  BOOST_TEST(write.succeeded(1));
  BOOST_TEST(read.pending());
}

BOOST_FIXTURE_TEST_CASE(what_reads_nothing_is_no_sign_of_life, fed_connection)
{
  wheel_watchdog dog(wheel, 10s);
  stream->feed(dog);
  bool expired = false;
  dog.async_expired([&](error_code ec) { expired = !ec; });
  stream->expires_after(9s);
  support::result r;
  stream->async_read_some(asio::buffer(bytes), r.recorder());
  time.advance(9s);
  BOOST_TEST(r.failed(asio::error::timed_out));
  time.advance(1s);
  BOOST_TEST(expired);
}

BOOST_FIXTURE_TEST_CASE(feeds_any_number_and_once_each, fed_connection)
{
  wheel_watchdog dog(wheel, 10s);
  wheel_watchdog other(wheel, 10s);
  heartbeat beat(wheel, {.interval = 10s, .max_missed = 1});
  stream->feed(dog);
  stream->feed(other);
  stream->feed(beat);
  stream->feed(dog);
  int expired = 0;
  dog.async_expired([&](error_code ec) { expired += !ec; });
  other.async_expired([&](error_code ec) { expired += !ec; });
  time.advance(8s);
  receive();
  time.advance(8s);
  BOOST_TEST(expired == 0);
  stream->feed_nothing();
  receive();
  time.advance(2s);
  BOOST_TEST(expired == 2);
}

BOOST_FIXTURE_TEST_CASE(feeds_what_was_moved_to, fed_connection)
{
  std::optional<wheel_watchdog> dog(std::in_place, wheel, 10s);
  stream->feed(*dog);
  wheel_watchdog moved(std::move(*dog));
  dog.reset();
  auto moved_stream = std::move(*stream);
  stream.emplace(std::move(moved_stream));
  bool expired = false;
  moved.async_expired([&](error_code ec) { expired = !ec; });
  time.advance(8s);
  receive();
  time.advance(8s);
  BOOST_TEST(!expired);
}

BOOST_FIXTURE_TEST_CASE(what_is_gone_is_fed_no_more, fed_connection)
{
  std::optional<wheel_watchdog> dog(std::in_place, wheel, 10s);
  std::optional<heartbeat> beat(std::in_place, wheel, heartbeat_options{10s, 2});
  stream->feed(*dog);
  stream->feed(*beat);
  std::size_t read = 0;
  stream->async_read_some(asio::buffer(bytes), [&](error_code, std::size_t n) {
    read = n;
    dog.reset();  // by a handler that has just fed it
  });
  beat.reset();
  peer->async_write_some(asio::buffer("x", 1), [](error_code, std::size_t) {});
  time.advance(0s);
  BOOST_TEST(read == 1U);
  receive();
}

BOOST_FIXTURE_TEST_CASE(a_watchdog_on_the_wheel_of_another_context_is_fed, fed_connection)
{
  support::wheel_in_virtual_time elsewhere;
  wheel_watchdog dog(elsewhere.wheel, 10s);
  stream->feed(dog);
  bool expired = false;
  dog.async_expired([&](error_code ec) { expired = !ec; });
  elsewhere.time.advance(8s);
  receive();
  elsewhere.time.advance(8s);
  BOOST_TEST(!expired);
  elsewhere.time.advance(2s);
  BOOST_TEST(expired);
}

BOOST_FIXTURE_TEST_CASE(a_type_erased_handler_runs_on_its_strand, fed_connection)
{
  wheel_watchdog dog(wheel, 10s);
  stream->feed(dog);
  auto strand = asio::make_strand(context);
  bool on_strand = false;
  asio::any_completion_handler<void(error_code, std::size_t)> handler = asio::bind_executor(
    strand, [&](error_code, std::size_t) { on_strand = strand.running_in_this_thread(); });
  stream->async_read_some(asio::buffer(bytes), std::move(handler));
  peer->async_write_some(asio::buffer("x", 1), [](error_code, std::size_t) {});
  time.advance(0s);
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_SUITE_END()
