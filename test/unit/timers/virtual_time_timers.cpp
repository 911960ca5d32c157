// Every timer goes by the wheel's clock, and so follows virtual time.
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>

#include "support/outcome.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::ip::tcp;
using support::context_with_wheel;
using support::outcome;

namespace {

/// A context whose clock stands still, of either kind.
struct still : context_with_wheel {
  explicit still(clock_source clock = clock_source::precise) : context_with_wheel(with(clock)) {}

  static wheel_options with(clock_source clock)
  {
    wheel_options options;
    options.clock = clock;
    return options;
  }

  virtual_time time{wheel};
};

/// A connection over the loopback, whose other end says nothing.
struct silent_connection {
  explicit silent_connection(asio::io_context& context)
    : acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      here(context),
      there(context)
  {
    here.connect(acceptor.local_endpoint());
    acceptor.accept(there);
  }

  tcp::acceptor acceptor;
  tcp::socket here, there;
  std::array<char, 16> data{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(virtual_time_timers)

BOOST_AUTO_TEST_CASE(a_socket_operation_times_out_at_its_virtual_deadline)
{
  still s;
  silent_connection c(s.context);
  outcome read;
  const auto record = read.recorder();
  c.here.async_read_some(
    asio::buffer(c.data),
    timeout_after(s.wheel, 1h, [&](error_code ec, std::size_t) { record(ec); }));
  s.time.advance(1h - 1ms);
  BOOST_TEST(read.pending());
  s.time.advance(2ms);
  BOOST_TEST((read.error == asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(a_socket_operation_that_is_done_in_time_is_not_touched)
{
  still s;
  silent_connection c(s.context);
  std::size_t received = 0;
  c.here.async_read_some(asio::buffer(c.data),
                         cancel_after(s.wheel, 1h, [&](error_code ec, std::size_t n) {
                           BOOST_TEST(!ec);
                           received = n;
                         }));
  asio::write(c.there, asio::buffer("five!", 5));
  s.time.advance(2h);
  BOOST_TEST(received == 5U);
  BOOST_TEST(s.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(an_interval_ticks_as_often_as_its_period_fits)
{
  still s;
  int ticks = 0;
  wheel_interval interval(s.wheel, 1min);
  asio::co_spawn(
    s.context,
    [&]() -> asio::awaitable<void> {
      for (;; ++ticks) co_await interval.async_tick();
    },
    asio::detached);
  s.time.advance(1h + 1ms);  // to the end of the tick that the last one is due in
  BOOST_TEST(ticks == 61);   // the first at once
  interval.cancel();
  s.time.advance(0s);
}

BOOST_AUTO_TEST_CASE(a_scheduler_runs_its_tasks)
{
  still s;
  keyed_scheduler<std::string> scheduler(s.wheel);
  int once = 0, hourly = 0;
  BOOST_TEST(scheduler.run_after("once", 90min, [&] { ++once; }));
  BOOST_TEST(scheduler.run_every(
    "hourly", 1h, [&] { ++hourly; }, 5));
  s.time.advance(24h);
  BOOST_TEST(once == 1);
  BOOST_TEST(hourly == 5);
  BOOST_TEST(scheduler.size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_watchdog_counts_from_the_last_virtual_touch)
{
  for (const auto clock : {clock_source::precise, clock_source::coarse}) {
    still s(clock);
    wheel_watchdog dog(s.wheel, 30s);
    outcome expired;
    dog.async_expired(expired.recorder());
    for (int i = 0; i < 100; ++i) {
      s.time.advance(29s);
      BOOST_TEST(expired.pending());
      dog.touch();
    }
    s.time.advance(31s);
    BOOST_TEST(expired.succeeded());
  }
}

BOOST_AUTO_TEST_CASE(heartbeats_of_a_day_pass_in_no_time)
{
  still s;
  constexpr std::size_t connections = 100;
  std::deque<heartbeat> beats;
  std::size_t pings = 0, lost = 0;
  const auto live = [&](heartbeat& beat) -> asio::awaitable<void> {
    for (;;) {
      if (co_await beat.async_next() == heartbeat_event::peer_lost) {
        ++lost;
        co_return;
      }
      ++pings;
      beat.sent();
      beat.received();
    }
  };
  for (std::size_t i = 0; i < connections; ++i) {
    beats.emplace_back(s.wheel, heartbeat_options{.interval = 30s, .max_missed = 3});
    asio::co_spawn(s.context, live(beats.back()), asio::detached);
  }
  s.time.advance(24h);
  // Each ping is sent at the first tick that is not before its time: at most 1 ms late.
  BOOST_TEST(pings >= connections * 2879);
  BOOST_TEST(pings <= connections * 2880);
  BOOST_TEST(lost == 0U);

  for (auto& beat : beats) beat.cancel();
  s.time.advance(0s);
}

BOOST_AUTO_TEST_CASE(a_wheel_in_real_time_beside_it_keeps_its_own)
{
  still s;
  context_with_wheel real;
  outcome in_virtual_time, in_real_time;
  wheel_timer frozen(s.wheel, 1h), running(real.wheel, 1h);
  frozen.async_wait(in_virtual_time.recorder());
  running.async_wait(in_real_time.recorder());
  s.time.advance(2h);
  real.context.poll();
  BOOST_TEST(in_virtual_time.succeeded());
  BOOST_TEST(in_real_time.pending());
  // Started while the clocks of the process differ.
  frozen.expires_after(1h);
  BOOST_TEST((frozen.expiry() == s.wheel.now() + 1h));
  running.expires_after(1h);
  BOOST_TEST((running.expiry() <= real.wheel.now() + 1h));
  real.context.poll();
}

BOOST_AUTO_TEST_CASE(cancels_that_were_put_off_do_not_move_the_clock)
{
  still s;
  wheel_timer timer(s.wheel, 1h);
  outcome wait;
  timer.async_wait(wait.recorder());
  timer.cancel();
  const auto before = s.time.now();
  BOOST_TEST(!s.time.advance_to_next());
  BOOST_TEST((s.time.now() == before));
  s.time.advance(0s);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_due_in_virtual_time_can_be_cancelled_after_it)
{
  context_with_wheel c;
  outcome wait;
  wheel_timer first(c.wheel, 1h), second(c.wheel, first.expiry());
  first.async_wait([](error_code) { throw 1; });
  second.async_wait(wait.recorder());
  {
    virtual_time time(c.wheel);
    BOOST_CHECK_THROW(time.advance(2h), int);
  }
  BOOST_TEST(second.cancel() == 1U);
  c.context.run();
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_SUITE_END()
