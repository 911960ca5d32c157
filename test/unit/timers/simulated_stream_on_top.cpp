// What the library offers for streams, on streams in memory: timed_stream with its limits, guards,
// heartbeats and deadlines; a proxy between two connections; a server that accepts.
#include <array>
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/simulated_ends.hpp"

// GCC 12 takes the two halves of a coroutine's frame allocation for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::use_awaitable;
using boost::system::error_code;
using support::simulated_ends;

namespace {

/// The server's end has deadlines.
struct timed_ends : simulated_ends {
  explicit timed_ends(const simulated_link& link = {}) : simulated_ends(link) {}

  void start_timed_read()
  {
    read = {};
    stream.async_read_some(asio::buffer(room), read.recorder());
    run_ready();
  }

  /// The operation ends `ahead`, and not before.
  void times_out_after(std::chrono::nanoseconds ahead, const support::result& r)
  {
    time.advance(ahead - 1ns);
    BOOST_TEST(r.pending());
    time.advance(1ns);
    BOOST_TEST(r.failed(asio::error::timed_out));
  }

  timed_stream<simulated_stream> stream{std::move(server)};
};

/// Echoes until the end of the stream.
asio::awaitable<void> echo(simulated_stream stream)
{
  std::array<char, 1024> bytes{};
  for (error_code ec;;) {
    const std::size_t n =
      co_await stream.async_read_some(asio::buffer(bytes), asio::redirect_error(use_awaitable, ec));
    if (ec) co_return;
    co_await asio::async_write(stream, asio::buffer(bytes, n), use_awaitable);
  }
}

/// Carries one direction of a proxy, and passes the end of the stream on.
asio::awaitable<void> carry(std::shared_ptr<simulated_stream> from,
                            std::shared_ptr<simulated_stream> to)
{
  std::array<char, 1024> bytes{};
  error_code ec;
  for (;;) {
    const std::size_t n =
      co_await from->async_read_some(asio::buffer(bytes), asio::redirect_error(use_awaitable, ec));
    if (ec) break;
    co_await asio::async_write(*to, asio::buffer(bytes, n),
                               asio::redirect_error(use_awaitable, ec));
    if (ec) break;
  }
  if (ec == asio::error::eof)
    to->shutdown(asio::socket_base::shutdown_send, ec);
  else
    to->reset();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(on_top_of_streams_in_memory)

BOOST_AUTO_TEST_CASE(a_timed_stream_expires)
{
  timed_ends c({.latency = 20ms});
  c.stream.expires_after(30s);
  c.start_timed_read();
  c.client.stall();
  c.say("never");
  c.times_out_after(30s, c.read);
  BOOST_TEST(c.stream.socket().is_open());
  // What comes later can be read.
  c.client.resume();
  c.stream.expires_never();
  c.start_timed_read();
  BOOST_TEST(c.read.succeeded(5));
}

BOOST_AUTO_TEST_CASE(a_timed_stream_limits_the_wait_for_a_read)
{
  timed_ends c({.latency = 20ms});
  c.stream.set_limits({.read_idle = 1min});
  for (int i = 0; i < 3; ++i) {
    c.start_timed_read();
    c.time.advance(50s);
    c.say("x");
    c.time.advance(20ms);
    BOOST_TEST(c.read.succeeded(1));
  }
  c.start_timed_read();
  c.times_out_after(1min, c.read);
}

BOOST_AUTO_TEST_CASE(a_timed_stream_limits_a_write_that_nobody_takes)
{
  timed_ends c({.latency = 20ms, .send_buffer = 1000});
  c.stream.set_limits({.write_stall = 10s});
  const std::string much(2000, 'x');
  asio::async_write(c.stream, asio::buffer(much), c.written.recorder());
  c.run_ready();
  c.times_out_after(10s, c.written);
  BOOST_TEST(c.written.size == 1000U);
}

BOOST_AUTO_TEST_CASE(a_timed_stream_limits_all_of_it_even_if_bytes_drip)
{
  timed_ends c;
  c.stream.set_limits({.read_idle = 10s, .total = 1min});
  int reads = 0;
  for (;; ++reads) {
    c.start_timed_read();
    c.time.advance(5s);
    if (!c.read.pending()) break;
    c.say("x");
    BOOST_TEST(c.read.succeeded(1));
  }
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(reads == 11);
  BOOST_TEST(c.elapsed() == 1min);
}

BOOST_AUTO_TEST_CASE(a_read_times_out_and_an_arrival_at_the_same_tick_is_not_lost)
{
  simulated_ends c({.latency = 5s});
  c.say("x");
  c.server.async_read_some(asio::buffer(c.room), timeout_after(5s, c.read.recorder()));
  c.time.advance(5s);
  if (c.read.error)
    BOOST_TEST((c.read.failed(asio::error::timed_out) && c.heard() == "x"));
  else
    BOOST_TEST(c.read.succeeded(1));
}

BOOST_AUTO_TEST_CASE(a_deadline_of_a_composed_read_keeps_what_has_come)
{
  simulated_ends c;
  asio::async_read(c.server, asio::buffer(c.room, 10), timeout_after(5s, c.read.recorder()));
  c.say("four");
  c.time.advance(5s);
  // Asio's composed read of Boost 1.81 passes the cancellation on to the stream's.
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(c.read.size == 4U);
}

BOOST_AUTO_TEST_CASE(a_watchdog_guards_and_is_touched_by_traffic)
{
  simulated_ends c({.latency = 20ms});
  wheel_watchdog dog(c.wheel, 30s);
  const auto read = [&] {
    c.read = {};
    c.server.async_read_some(asio::buffer(c.room), dog.guard(c.read.recorder()));
  };
  for (int i = 0; i < 3; ++i) {
    read();
    c.time.advance(20s);
    c.say("x");
    c.time.advance(20ms);
    BOOST_TEST(c.read.succeeded(1));
    dog.touch();
  }
  read();
  c.client.inject(simulated_fault::drop);
  c.say("unheard");
  c.time.advance(31s);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(a_heartbeat_finds_a_peer_that_vanished)
{
  simulated_ends c({.latency = 20ms});
  asio::co_spawn(c.context, echo(std::move(c.server)), asio::detached);
  heartbeat beat(c.wheel, {.interval = 10s, .max_missed = 3});
  int pings = 0;
  std::chrono::nanoseconds lost_at{};
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      for (;;) {
        if (co_await beat.async_next(use_awaitable) == heartbeat_event::peer_lost) break;
        ++pings;
        co_await asio::async_write(c.client, asio::buffer("ping", 4), use_awaitable);
        beat.sent();
      }
      lost_at = c.elapsed();
      c.client.close();
    },
    asio::detached);
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      for (error_code ec;;) {
        co_await c.client.async_read_some(asio::buffer(c.room),
                                          asio::redirect_error(use_awaitable, ec));
        if (ec) co_return;
        beat.received();
      }
    },
    asio::detached);
  c.time.advance(55s);
  BOOST_TEST(pings == 5);
  BOOST_TEST((lost_at == 0ns));
  const int before = pings;
  const auto vanished_at = c.elapsed();
  c.client.inject(simulated_fault::drop);
  c.time.advance(1h);
  BOOST_TEST(pings == before + 3);
  // Three pings, and an interval for the answer to each.
  BOOST_TEST((lost_at > vanished_at + 30s && lost_at < vanished_at + 40s));
}

BOOST_AUTO_TEST_CASE(a_proxy_carries_bytes_and_faults_between_two_connections)
{
  for (const bool reset : {false, true}) {
    support::wheel_in_virtual_time w;
    auto [client, inner] = simulated_pair(w.wheel, {.latency = 10ms});
    auto [outer, server] = simulated_pair(w.wheel, {.latency = 30ms, .send_buffer = 100});
    const auto in = std::make_shared<simulated_stream>(std::move(inner));
    const auto out = std::make_shared<simulated_stream>(std::move(outer));
    asio::co_spawn(w.context, carry(in, out), asio::detached);
    asio::co_spawn(w.context, carry(out, in), asio::detached);
    asio::co_spawn(w.context, echo(std::move(server)), asio::detached);
    const std::string question(5000, 'q');
    std::string answer(question.size(), ' ');
    support::result asked, told;
    asio::async_write(client, asio::buffer(question), asked.recorder());
    asio::async_read(client, asio::buffer(answer), told.recorder());
    w.time.advance(1min);
    BOOST_TEST(asked.succeeded(5000));
    BOOST_TEST(told.succeeded(5000));
    BOOST_TEST((answer == question));
    told = {};
    client.async_read_some(asio::buffer(answer), told.recorder());
    if (reset)
      client.reset();
    else
      client.shutdown(asio::socket_base::shutdown_send);
    w.time.advance(1min);
    BOOST_TEST(told.failed(reset ? error_code(asio::error::connection_reset)
                                 : error_code(asio::error::eof)));
    client.close();
    in->close();
    out->close();
    BOOST_TEST(w.time.advance_until_idle(1h).idle);
    BOOST_TEST(w.wheel.pending() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_server_is_tested_with_its_accept_loop)
{
  support::wheel_in_virtual_time w;
  simulated_acceptor acceptor(w.wheel);
  int sessions = 0;
  asio::co_spawn(
    w.context,
    [&]() -> asio::awaitable<void> {
      for (error_code ec;;) {
        simulated_stream stream =
          co_await acceptor.async_accept(asio::redirect_error(use_awaitable, ec));
        if (ec) co_return;
        ++sessions;
        asio::co_spawn(w.context, echo(std::move(stream)), asio::detached);
      }
    },
    asio::detached);
  int served = 0;
  for (int i = 0; i < 10; ++i) {
    asio::co_spawn(
      w.context,
      [&, i]() -> asio::awaitable<void> {
        co_await w.wheel.async_wait(i * 100ms);
        simulated_stream stream = acceptor.connect({.latency = 20ms});
        const std::string question(static_cast<std::size_t>(i + 1) * 1000, 'x');
        std::string answer(question.size(), ' ');
        co_await asio::async_write(stream, asio::buffer(question), use_awaitable);
        co_await asio::async_read(stream, asio::buffer(answer), use_awaitable);
        if (answer == question) ++served;
      },
      asio::detached);
  }
  w.time.advance(1min);
  BOOST_TEST(served == 10);
  BOOST_TEST(sessions == 10);
  acceptor.close();
  BOOST_TEST(w.time.advance_until_idle(1h).idle);
  BOOST_TEST(w.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
