// Streams in memory: what travels, and when it arrives.
#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "support/run.hpp"
#include "support/simulated_ends.hpp"

// GCC 12 takes the two halves of a coroutine's frame allocation for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::simulated_ends;

namespace {

static_assert(!std::is_copy_constructible_v<simulated_stream>);
static_assert(std::is_move_constructible_v<simulated_stream>);
static_assert(std::is_move_assignable_v<simulated_stream>);
// As sockets: from the stream of a strand, say, and without a word.
static_assert(
  std::is_convertible_v<basic_simulated_stream<asio::strand<asio::io_context::executor_type>>,
                        simulated_stream>);

}  // namespace

BOOST_AUTO_TEST_SUITE(streams_in_memory)

BOOST_AUTO_TEST_CASE(carry_bytes_in_order_and_at_once)
{
  simulated_ends c;
  c.say("hello, ");
  c.say("world");
  BOOST_TEST(c.heard() == "hello, world");
  BOOST_TEST(c.elapsed() == 0ns);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(carry_bytes_both_ways)
{
  simulated_ends c({.latency = 20ms});
  std::string at_client(4, ' ');
  std::string at_server(4, ' ');
  support::result asked, heard, answered, told;
  asio::async_write(c.client, asio::buffer("ping", 4), asked.recorder());
  asio::async_read(c.server, asio::buffer(at_server), [&](error_code ec, std::size_t n) {
    heard.recorder()(ec, n);
    asio::async_write(c.server, asio::buffer("pong", 4), answered.recorder());
  });
  asio::async_read(c.client, asio::buffer(at_client), told.recorder());
  const auto passage = c.time.advance_until_idle(1h);
  BOOST_TEST(passage.idle);
  BOOST_TEST(c.elapsed() == 40ms);
  BOOST_TEST(heard.succeeded(4));
  BOOST_TEST(told.succeeded(4));
  BOOST_TEST(at_server == "ping");
  BOOST_TEST(at_client == "pong");
}

BOOST_AUTO_TEST_CASE(let_nothing_arrive_before_the_latency)
{
  simulated_ends c({.latency = 20ms});
  c.say("x");
  c.start_read();
  c.time.advance(20ms - 1ns);
  BOOST_TEST(c.read.pending());
  BOOST_TEST(c.server.available() == 0U);
  c.time.advance(1ns);
  BOOST_TEST(c.read.succeeded(1));
}

BOOST_AUTO_TEST_CASE(keep_the_order_whatever_the_jitter)
{
  simulated_ends c({.latency = 10ms, .jitter = 100ms, .seed = 3});
  std::string sent;
  for (char each = 'a'; each <= 'z'; ++each) {
    sent += each;
    c.say(std::string(1, each));
  }
  std::string got;
  std::vector<std::chrono::nanoseconds> times;
  while (c.time.advance_to_next()) {
    got += c.heard();
    times.push_back(c.elapsed());
  }
  BOOST_TEST(got == sent);
  BOOST_TEST(times.size() > 1U);
  BOOST_TEST((times.front() >= 10ms && times.back() <= 111ms));
}

BOOST_AUTO_TEST_CASE(keep_to_their_bandwidth)
{
  simulated_ends c({.latency = 5ms, .bytes_per_second = 1'460'000, .send_buffer = 1U << 20U});
  c.say(std::string(146'000, 'x'));  // 100 segments of 1 ms
  std::size_t got = 0;
  c.time.advance(5ms);
  BOOST_TEST(c.heard().size() == 0U);
  for (int i = 1; i <= 100; ++i) {
    c.time.advance(1ms);
    got += c.heard().size();
    BOOST_TEST(got == static_cast<std::size_t>(i) * 1460);
  }
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(lose_segments_for_one_retransmission)
{
  simulated_ends c({.latency = 10ms, .loss = 1});
  c.say("x");
  c.start_read();
  c.time.advance(230ms - 1ns);  // 200 ms and three latencies
  BOOST_TEST(c.read.pending());
  c.time.advance(1ns);
  BOOST_TEST(c.read.succeeded(1));
}

BOOST_AUTO_TEST_CASE(lose_the_share_that_they_should)
{
  simulated_ends c({.seed = 9, .loss = 0.25});
  int lost = 0;
  for (int i = 0; i < 400; ++i) {
    c.say("x");
    if (c.heard().empty()) ++lost;
    c.time.advance(1s);
    static_cast<void>(c.heard());
  }
  BOOST_TEST((lost > 70 && lost < 130), lost);
}

BOOST_AUTO_TEST_CASE(make_writes_wait_for_a_peer_that_takes_nothing)
{
  simulated_ends c({.latency = 10ms, .send_buffer = 1000});
  const std::string much(1500, 'x');
  c.start_write(much);
  c.run_ready();
  BOOST_TEST(c.written.succeeded(1000));
  c.start_write(std::string_view(much).substr(1000));
  c.time.advance(1h);
  BOOST_TEST(c.written.pending());
  c.start_read();
  c.run_ready();
  BOOST_TEST(c.read.succeeded(1000));
  BOOST_TEST(c.written.succeeded(500));
  c.time.advance(10ms);
  BOOST_TEST(c.heard().size() == 500U);
}

BOOST_AUTO_TEST_CASE(fill_and_empty_several_buffers)
{
  simulated_ends c;
  const std::array<asio::const_buffer, 4> out{asio::buffer("ab", 2), asio::const_buffer(),
                                              asio::buffer("c", 1), asio::buffer("def", 3)};
  c.client.async_write_some(out, c.written.recorder());
  c.run_ready();
  BOOST_TEST(c.written.succeeded(6));
  std::array<char, 1> first{};
  std::array<char, 9> second{};
  const std::array<asio::mutable_buffer, 2> in{asio::buffer(first), asio::buffer(second)};
  c.server.async_read_some(in, c.read.recorder());
  c.run_ready();
  BOOST_TEST(c.read.succeeded(6));
  BOOST_TEST(first[0] == 'a');
  BOOST_TEST(std::string(second.data(), 5) == "bcdef");
}

// As a socket does, which does not look at its descriptor for them unless it has none.
BOOST_AUTO_TEST_CASE(complete_empty_operations_at_once)
{
  simulated_ends c({.send_buffer = 1});
  support::result read, written;
  const auto start_empty = [&] {
    read = written = {};
    c.client.async_read_some(asio::mutable_buffer(), read.recorder());
    c.client.async_write_some(asio::const_buffer(), written.recorder());
    BOOST_TEST((read.pending() && written.pending()));
    c.run_ready();
  };
  c.say("x");
  c.client.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.start_write("y");
  start_empty();  // behind others
  BOOST_TEST((read.succeeded(0) && written.succeeded(0)));
  BOOST_TEST((c.read.pending() && c.written.pending()));
  c.client.reset();
  start_empty();
  BOOST_TEST((read.succeeded(0) && written.succeeded(0)));
  c.client.close();
  start_empty();
  BOOST_TEST(read.failed(asio::error::bad_descriptor));
  BOOST_TEST(written.failed(asio::error::bad_descriptor));
}

BOOST_AUTO_TEST_CASE(say_how_much_has_arrived)
{
  simulated_ends c({.latency = 1ms});
  c.say("12345");
  BOOST_TEST(c.server.available() == 0U);
  c.time.advance(1ms);
  BOOST_TEST(c.server.available() == 5U);
  BOOST_TEST(c.client.available() == 0U);
}

BOOST_AUTO_TEST_CASE(read_the_end_behind_the_last_byte)
{
  simulated_ends c({.latency = 10ms});
  c.say("last");
  c.client.close();
  BOOST_TEST(!c.client.is_open());
  c.time.advance(9ms);
  c.start_read();
  c.time.advance(1ms);
  BOOST_TEST(c.read.succeeded(4));
  for (int i = 0; i < 2; ++i) {
    c.start_read();
    c.run_ready();
    BOOST_TEST(c.read.failed(asio::error::eof));
  }
}

BOOST_AUTO_TEST_CASE(end_what_is_pending_when_they_close)
{
  simulated_ends c({.send_buffer = 1});
  c.say("x");
  support::result write;
  c.server.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.run_ready();
  c.read = {};
  c.server.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.server.async_write_some(asio::buffer("yz", 1), write.recorder());
  c.run_ready();
  write = {};
  c.server.async_write_some(asio::buffer("z", 1), write.recorder());
  c.server.close();
  BOOST_TEST((c.read.pending() && write.pending()));
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::operation_aborted));
  BOOST_TEST(write.failed(asio::error::operation_aborted));
  c.start_read();
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::bad_descriptor));
  c.server.close();  // again
}

BOOST_AUTO_TEST_CASE(answer_with_a_reset_what_arrives_after_a_close)
{
  simulated_ends c({.latency = 10ms});
  c.server.close();
  c.say("too late");
  support::result read;
  c.time.advance(19ms);
  c.say("not known yet");
  c.time.advance(1ms);
  c.start_write("x");
  c.client.async_read_some(asio::buffer(c.room), read.recorder());
  c.run_ready();
  BOOST_TEST(c.written.failed(asio::error::connection_reset));
  BOOST_TEST(read.failed(asio::error::connection_reset));
}

BOOST_AUTO_TEST_CASE(shut_down_one_direction)
{
  simulated_ends c({.latency = 10ms});
  c.say("question");
  c.client.shutdown(simulated_stream::shutdown_send);
  c.start_write("more");
  c.time.advance(10ms);
  BOOST_TEST(c.written.failed(asio::error::broken_pipe));
  BOOST_TEST(c.heard() == "question");
  c.start_read();
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::eof));
  support::result answer;
  c.server.async_write_some(asio::buffer("answer", 6), c.written.recorder());
  c.client.async_read_some(asio::buffer(c.room), answer.recorder());
  c.time.advance(10ms);
  BOOST_TEST(answer.succeeded(6));
}

BOOST_AUTO_TEST_CASE(stop_receiving)
{
  simulated_ends c;
  c.start_read();
  c.server.shutdown(simulated_stream::shutdown_receive);
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::eof));
  error_code ec;
  c.server.close();
  c.server.shutdown(simulated_stream::shutdown_both, ec);
  BOOST_TEST(ec == asio::error::bad_descriptor);
  BOOST_CHECK_THROW(c.server.shutdown(asio::socket_base::shutdown_both),
                    boost::system::system_error);
}

BOOST_AUTO_TEST_CASE(fail_without_a_connection)
{
  simulated_ends c;
  simulated_stream lonely(c.context);
  BOOST_TEST(!lonely.is_open());
  lonely.async_read_some(asio::buffer(c.room), c.read.recorder());
  lonely.async_write_some(asio::buffer(c.room), c.written.recorder());
  lonely.cancel();
  lonely.reset();
  lonely.inject_after(1s, simulated_fault::reset);
  lonely.drop_after(1);
  BOOST_TEST(c.read.pending());
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::bad_descriptor));
  BOOST_TEST(c.written.failed(asio::error::bad_descriptor));
}

BOOST_AUTO_TEST_CASE(refuse_links_that_make_no_sense)
{
  simulated_ends c;
  const auto says = [](const char* name) {
    return [name](const std::invalid_argument& e) {
      return std::string(e.what()).find(name) != std::string::npos;
    };
  };
  using error = std::invalid_argument;
  BOOST_CHECK_EXCEPTION(static_cast<void>(simulated_pair(c.wheel, {.latency = -1ns})), error,
                        says("latency"));
  BOOST_CHECK_EXCEPTION(static_cast<void>(simulated_pair(c.wheel, {.jitter = -1ns})), error,
                        says("jitter"));
  BOOST_CHECK_EXCEPTION(static_cast<void>(simulated_pair(c.wheel, {.send_buffer = 0})), error,
                        says("send_buffer"));
  BOOST_CHECK_EXCEPTION(static_cast<void>(simulated_pair(c.wheel, {.loss = 1.5})), error,
                        says("loss"));
}

BOOST_AUTO_TEST_CASE(run_in_real_time)
{
  asio::io_context context;
  auto& wheel = make_wheel(context);
  auto ends = simulated_pair(wheel, {.latency = 20ms});
  auto& [client, server] = ends;
  std::array<char, 8> room{};
  const auto start = std::chrono::steady_clock::now();
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    co_await client.async_write_some(asio::buffer("abc", 3));
    BOOST_TEST(co_await server.async_read_some(asio::buffer(room)) == 3U);
  });
  BOOST_TEST((std::chrono::steady_clock::now() - start >= 20ms));
}

BOOST_AUTO_TEST_CASE(carry_bytes_between_threads)
{
  asio::thread_pool pool(2);
  auto& wheel = make_wheel(pool);
  auto ends =
    simulated_pair(wheel, {.send_buffer = 500}, asio::make_strand(pool), asio::make_strand(pool));
  auto& [client, server] = ends;
  std::string sent(100'000, ' ');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 26);
  std::string got(sent.size(), ' ');
  asio::async_write(client, asio::buffer(sent), asio::detached);
  auto read = asio::async_read(server, asio::buffer(got), asio::use_future);
  BOOST_REQUIRE((read.wait_for(support::patience) == std::future_status::ready));
  BOOST_TEST(read.get() == sent.size());
  BOOST_TEST((got == sent));
  pool.join();
}

BOOST_AUTO_TEST_SUITE_END()
