// Faults of streams in memory: each by call, after a time and behind a number of bytes.
#include <asio_wheel.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <string>

#include "support/simulated_ends.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::simulated_ends;

BOOST_AUTO_TEST_SUITE(faults_of_streams_in_memory)

BOOST_AUTO_TEST_CASE(a_stall_keeps_bytes_on_the_way_until_it_is_over)
{
  simulated_ends c({.latency = 10ms});
  c.say("before");
  c.time.advance(5ms);
  c.client.stall();
  c.say(" and after");
  c.time.advance(1h);
  BOOST_TEST(c.heard().empty());
  BOOST_TEST(!c.wheel.next_expiry());  // nothing is going to happen
  c.client.resume();
  BOOST_TEST(c.heard() == "before and after");
}

BOOST_AUTO_TEST_CASE(a_stall_is_of_one_direction)
{
  simulated_ends c;
  c.client.stall();
  support::result read;
  c.client.async_read_some(asio::buffer(c.room), read.recorder());
  c.server.async_write_some(asio::buffer("x", 1), c.written.recorder());
  c.run_ready();
  BOOST_TEST(read.succeeded(1));
}

BOOST_AUTO_TEST_CASE(a_stall_fills_the_send_buffer)
{
  simulated_ends c({.send_buffer = 10});
  c.client.stall();
  c.say("0123456789");
  c.start_write("more");
  c.time.advance(1h);
  BOOST_TEST(c.written.pending());
  c.client.resume();
  BOOST_TEST(c.heard() == "0123456789more");
  BOOST_TEST(c.written.succeeded(4));
}

BOOST_AUTO_TEST_CASE(a_stall_behind_bytes_lets_exactly_these_arrive)
{
  simulated_ends c({.latency = 10ms});
  c.say("ab");
  c.client.inject_after_bytes(3, simulated_fault::stall);
  c.say("cdefgh");
  c.time.advance(10ms);
  BOOST_TEST(c.heard() == "abcde");
  c.time.advance(1h);
  BOOST_TEST(c.heard().empty());
  c.client.resume();
  BOOST_TEST(c.heard() == "fgh");
}

BOOST_AUTO_TEST_CASE(a_stall_comes_and_goes_at_its_time)
{
  simulated_ends c;
  c.client.inject_after(5s, simulated_fault::stall);
  c.client.inject_after(8s, simulated_fault::resume);
  c.time.advance(5s - 1ns);
  c.say("a");
  BOOST_TEST(c.heard() == "a");
  c.time.advance(1ns);
  c.say("b");
  BOOST_TEST(c.heard().empty());
  c.time.advance(3s);
  BOOST_TEST(c.heard() == "b");
}

BOOST_AUTO_TEST_CASE(a_fault_comes_in_time_between_arrivals_of_the_same_tick)
{
  simulated_ends c({.latency = 10ms});
  c.client.inject_after(10'300us, simulated_fault::stall);
  c.time.advance(200us);
  c.say("before");
  c.time.advance(200us);
  c.say(" and after");
  c.time.advance(1s);
  BOOST_TEST(c.heard() == "before");
}

BOOST_AUTO_TEST_CASE(a_reset_fails_all_operations_of_both_ends)
{
  simulated_ends c({.latency = 10ms, .send_buffer = 4});
  support::result at_client;
  c.say("lost");
  c.start_write("pending");
  c.start_read();
  c.client.async_read_some(asio::buffer(c.room), at_client.recorder());
  c.server.reset();
  BOOST_TEST((c.read.pending() && c.written.pending() && at_client.pending()));
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::connection_reset));
  BOOST_TEST(c.written.failed(asio::error::connection_reset));
  BOOST_TEST(at_client.failed(asio::error::connection_reset));
  c.start_read();
  c.start_write("again");
  c.time.advance(1h);
  BOOST_TEST(c.read.failed(asio::error::connection_reset));
  BOOST_TEST(c.written.failed(asio::error::connection_reset));
  BOOST_TEST(c.server.is_open());
  boost::system::error_code ec;
  c.server.shutdown(asio::socket_base::shutdown_send, ec);
  BOOST_TEST(ec == asio::error::not_connected);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(a_reset_behind_bytes_comes_when_they_have_arrived)
{
  simulated_ends c({.latency = 10ms});
  c.client.inject_after_bytes(4, simulated_fault::reset);
  c.say("more than four");
  c.start_read();
  c.time.advance(10ms - 1ns);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ns);
  BOOST_TEST(c.read.failed(asio::error::connection_reset));
}

BOOST_AUTO_TEST_CASE(a_reset_comes_at_its_time)
{
  simulated_ends c;
  c.start_read();
  c.server.inject_after(1min, simulated_fault::reset);
  c.time.advance(1min - 1ns);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ns);
  BOOST_TEST(c.read.failed(asio::error::connection_reset));
}

BOOST_AUTO_TEST_CASE(a_chunk_limits_each_read_and_write_of_its_end)
{
  simulated_ends c;
  c.client.chunk(3);
  c.start_write("abcdef");
  c.run_ready();
  BOOST_TEST(c.written.succeeded(3));
  c.client.chunk(0);
  c.say("ghi");
  c.server.chunk(1);
  c.start_read();
  c.run_ready();
  BOOST_TEST(c.read.succeeded(1));
  c.server.chunk(4);
  c.start_read();
  c.run_ready();
  BOOST_TEST(c.read.succeeded(4));
}

BOOST_AUTO_TEST_CASE(a_chunk_comes_at_its_time_and_behind_bytes)
{
  simulated_ends c;
  c.client.inject_after(1s, {simulated_fault::chunk, 2});
  c.say("abc");
  c.time.advance(1s);
  c.start_write("def");
  c.run_ready();
  BOOST_TEST(c.written.succeeded(2));
  c.client.chunk(0);
  c.client.inject_after_bytes(2, {simulated_fault::chunk, 1});
  c.say("12");
  c.start_write("345");
  c.run_ready();
  BOOST_TEST(c.written.succeeded(1));
}

BOOST_AUTO_TEST_CASE(a_peer_that_vanishes_is_silent_in_both_directions)
{
  simulated_ends c({.latency = 1ms, .send_buffer = 100});
  c.client.drop_after(2);
  c.say("abcd");
  c.time.advance(1ms);
  BOOST_TEST(c.heard() == "ab");
  support::result told;
  c.client.async_read_some(asio::buffer(c.room), told.recorder());
  support::result answer;
  c.server.async_write_some(asio::buffer(std::string(100, 'x')), answer.recorder());
  c.run_ready();
  BOOST_TEST(answer.succeeded(100));  // into the buffer
  answer = {};
  c.server.async_write_some(asio::buffer("x", 1), answer.recorder());
  c.client.resume();  // does not help
  c.start_read();
  c.time.advance(1h);
  BOOST_TEST((c.read.pending() && told.pending() && answer.pending()));
  c.client.close();
  c.time.advance(1h);
  BOOST_TEST(told.failed(asio::error::operation_aborted));
  BOOST_TEST((c.read.pending() && answer.pending()));  // nobody has told the server
  c.server.close();
  c.run_ready();
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(a_peer_vanishes_by_call_and_at_its_time)
{
  simulated_ends by_call;
  by_call.client.inject(simulated_fault::drop);
  by_call.say("x");
  BOOST_TEST(by_call.heard().empty());

  simulated_ends at_time;
  at_time.client.inject_after(1s, simulated_fault::drop);
  at_time.say("x");
  at_time.time.advance(1s);
  at_time.say("y");
  BOOST_TEST(at_time.heard() == "x");
}

BOOST_AUTO_TEST_CASE(a_half_close_ends_what_was_sent)
{
  simulated_ends c({.latency = 10ms});
  c.say("last");
  c.client.inject(simulated_fault::half_close);
  c.start_write("x");
  c.time.advance(10ms);
  BOOST_TEST(c.written.failed(asio::error::broken_pipe));
  BOOST_TEST(c.heard() == "last");
  BOOST_TEST(c.read.failed(asio::error::eof));
}

BOOST_AUTO_TEST_CASE(a_half_close_behind_bytes_cuts_off_the_rest)
{
  simulated_ends c({.latency = 10ms});
  c.client.inject_after_bytes(2, simulated_fault::half_close);
  c.say("abcdef");
  c.time.advance(10ms);
  BOOST_TEST(c.heard() == "ab");
  BOOST_TEST(c.read.failed(asio::error::eof));
  c.start_write("x");
  c.run_ready();
  BOOST_TEST(c.written.failed(asio::error::broken_pipe));
  support::result told;
  c.client.async_read_some(asio::buffer(c.room), told.recorder());
  c.server.async_write_some(asio::buffer("xyz", 3), c.written.recorder());
  c.time.advance(10ms);
  BOOST_TEST(told.succeeded(3));
}

BOOST_AUTO_TEST_CASE(faults_behind_the_same_byte_come_in_the_order_of_the_calls)
{
  simulated_ends c;
  c.client.inject_after_bytes(5, simulated_fault::reset);
  c.client.inject_after_bytes(2, simulated_fault::stall);
  c.client.inject_after_bytes(2, {simulated_fault::chunk, 1});
  c.say("abcdef");
  BOOST_TEST(c.heard() == "ab");
  c.start_write("gh");
  c.run_ready();
  BOOST_TEST(c.written.succeeded(1));
  c.client.resume();
  c.start_read();
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::connection_reset));
}

BOOST_AUTO_TEST_CASE(a_fault_to_come_ends_with_its_connection)
{
  simulated_ends c;
  c.client.inject_after(24h, simulated_fault::reset);
  BOOST_TEST(c.wheel.pending() == 1U);
  c.client.close();
  BOOST_TEST(c.wheel.pending() > 0U);
  c.server.close();
  c.run_ready();
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.context.stopped());
}

BOOST_AUTO_TEST_CASE(a_wheel_without_room_fails_the_connection)
{
  // A read and an arrival are two waits.
  simulated_ends c({}, support::with_limit(1));
  c.start_read();
  c.client.async_write_some(asio::buffer("x", 1), c.written.recorder());
  c.time.advance(1ms);
  BOOST_TEST(c.read.calls == 1);
  BOOST_TEST(!!c.read.error);
  BOOST_TEST(c.written.calls == 1);
}

BOOST_AUTO_TEST_SUITE_END()
