// virtual_time::advance_until_idle: how far it goes, and what it says about that.
#include <array>
#include <asio_wheel/simulated_stream.hpp>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::wheel_in_virtual_time;

namespace {

/// Starts a wait of `period` again and again.
struct repeat {
  wheel_timer_service& wheel;
  duration period;

  void operator()(error_code ec) const
  {
    if (!ec) wheel.async_wait(period, *this);
  }
};

/// Gets a ping out of a heartbeat whenever there is one.
struct ping {
  heartbeat& beat;
  std::uint64_t& pings;

  void operator()(error_code ec, heartbeat_event) const
  {
    if (ec) return;
    ++pings;
    beat.received();
    beat.async_next(*this);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(virtual_time_until_idle)

BOOST_AUTO_TEST_CASE(stays_where_it_is_if_nothing_is_pending)
{
  wheel_in_virtual_time c;
  const auto passage = c.time.advance_until_idle(24h);
  BOOST_TEST(passage.idle);
  BOOST_TEST(passage.expired == 0U);
  BOOST_TEST((passage.time == 0s && c.elapsed() == 0s));
}

BOOST_AUTO_TEST_CASE(stands_where_the_last_wait_expired)
{
  wheel_in_virtual_time c;
  int calls = 0;
  for (const auto delay : {5s, 3600s, 60s}) {
    c.wheel.async_wait(delay, [&](error_code ec) {
      ++calls;
      if (!ec && calls == 2) c.wheel.async_wait(10h, [&](error_code) { ++calls; });
    });
  }
  const auto passage = c.time.advance_until_idle(24h);
  BOOST_TEST(passage.idle);
  BOOST_TEST(passage.expired == 4U);
  BOOST_TEST(calls == 4);
  BOOST_TEST((passage.time == 10h + 60s && c.elapsed() == passage.time));
}

BOOST_AUTO_TEST_CASE(ends_at_the_limit_what_goes_on_for_ever)
{
  wheel_in_virtual_time c;
  c.wheel.async_wait(1s, repeat{c.wheel, 1s});
  const auto passage = c.time.advance_until_idle(1min);
  BOOST_TEST(!passage.idle);
  BOOST_TEST(passage.expired == 60U);
  BOOST_TEST((passage.time == 1min && c.elapsed() == 1min));
  BOOST_TEST((c.time.advance_until_idle(500ms).time == 500ms));
  BOOST_TEST((c.time.advance_until_idle(500ms).expired == 1U));
}

BOOST_AUTO_TEST_CASE(does_not_go_to_what_lies_behind_the_limit)
{
  wheel_in_virtual_time c;
  int calls = 0;
  c.wheel.async_wait(2h, [&](error_code) { ++calls; });
  BOOST_TEST(!c.time.advance_until_idle(1h).idle);
  BOOST_TEST(calls == 0);
  const auto rest = c.time.advance_until_idle(duration::max());
  BOOST_TEST((rest.idle && rest.time == 1h));
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(completes_only_what_is_due_if_the_limit_is_zero_or_less)
{
  wheel_in_virtual_time c;
  int calls = 0;
  c.wheel.async_wait(0s, [&](error_code) { ++calls; });
  c.wheel.async_wait(1ms, [&](error_code) { ++calls; });
  const auto passage = c.time.advance_until_idle(-1h);
  BOOST_TEST(!passage.idle);
  BOOST_TEST((passage.expired == 1U && passage.time == 0s && calls == 1));
}

BOOST_AUTO_TEST_CASE(does_not_wait_for_what_never_expires)
{
  wheel_in_virtual_time c;
  c.wheel.async_wait(duration::max(), [](error_code) {});
  c.wheel.async_wait(1s, [](error_code) {});
  const auto passage = c.time.advance_until_idle(duration::max());
  BOOST_TEST(passage.idle);
  BOOST_TEST((passage.time == 1s && c.wheel.pending() == 1U));
}

BOOST_AUTO_TEST_CASE(may_go_on_after_a_handler_has_thrown)
{
  wheel_in_virtual_time c;
  int calls = 0;
  c.wheel.async_wait(1s, [](error_code) { throw std::runtime_error("handler"); });
  c.wheel.async_wait(2s, [&](error_code) { ++calls; });
  BOOST_CHECK_THROW(c.time.advance_until_idle(1h), std::runtime_error);
  BOOST_TEST((c.elapsed() == 1s));
  BOOST_TEST(c.time.advance_until_idle(1h).idle);
  BOOST_TEST((calls == 1 && c.elapsed() == 2s));
}

BOOST_AUTO_TEST_CASE(runs_the_threads_of_another_context)
{
  asio::thread_pool pool(1);
  auto& wheel = use_wheel(pool);
  std::atomic<int> steps{0};
  asio::co_spawn(
    pool,
    [&]() -> asio::awaitable<void> {
      for (; steps != 5; ++steps) co_await wheel.async_wait(1h);
    },
    asio::detached);
  virtual_time time(wheel, [&] { asio::post(pool, asio::use_future([] {})).wait(); });
  const auto passage = time.advance_until_idle(24h);
  BOOST_TEST(passage.idle);
  BOOST_TEST(passage.expired == 5U);
  BOOST_TEST(steps == 5);
}

// A small part of what a server with 100,000 connections lives through.
BOOST_AUTO_TEST_CASE(lives_through_a_day_of_heartbeats)
{
  constexpr std::size_t connections = 100;
  wheel_in_virtual_time c;
  std::vector<heartbeat> beats;
  beats.reserve(connections);
  std::uint64_t pings = 0;
  for (std::size_t i = 0; i != connections; ++i) {
    beats.emplace_back(c.wheel, heartbeat_options{.interval = 30s, .max_missed = 3});
    beats.back().async_next(ping{beats.back(), pings});
  }
  const auto day = c.time.advance_until_idle(24h);
  BOOST_TEST((!day.idle && day.time == 24h));
  BOOST_TEST(pings == 2880U * connections);
  BOOST_TEST(day.expired == pings);
}

BOOST_AUTO_TEST_CASE(aligns_to_the_beginning_of_a_tick)
{
  for (const duration past : {1ns, 999'999ns}) {
    wheel_in_virtual_time c;
    c.time.align();  // is there already
    BOOST_TEST(c.elapsed() == 0ns);
    c.time.advance(past);
    bool was_due = false;
    c.wheel.async_wait(duration::zero(), [&](error_code) { was_due = true; });
    c.time.align();
    BOOST_TEST(c.elapsed() == 1ms);
    BOOST_TEST(was_due);
    c.wheel.async_wait(5ms, [&](error_code) { was_due = false; });
    c.time.advance(5ms - 1ns);
    BOOST_TEST(was_due);
    c.time.advance(1ns);
    BOOST_TEST(!was_due);
  }
}

BOOST_AUTO_TEST_CASE(says_how_many_waits_are_stuck)
{
  wheel_in_virtual_time c;
  auto ends = simulated_pair(c.wheel);
  std::array<char, 8> bytes{};
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      co_await ends.first.async_read_some(asio::buffer(bytes), asio::use_awaitable);
    },
    asio::detached);
  c.wheel.async_wait(duration::max(), [](error_code) {});
  c.wheel.async_wait(1s, [](error_code) {});
  const auto stuck = c.time.advance_until_idle(1h);
  BOOST_TEST(stuck.idle);
  BOOST_TEST(stuck.time == 1s);
  BOOST_TEST(stuck.stuck == 2U);
  BOOST_TEST(stuck.blocked);
  std::size_t named = 0;
  for (const auto& row : c.wheel.pending_by_handler().rows) named += row.count;
  BOOST_TEST(named == 2U);

  c.wheel.cancel_all();
  const auto ended = c.time.advance_until_idle(1h);
  BOOST_TEST(ended.idle);
  BOOST_TEST(ended.stuck == 0U);
  BOOST_TEST(!ended.blocked);
}

BOOST_AUTO_TEST_CASE(does_not_call_stuck_what_has_a_deadline)
{
  wheel_in_virtual_time c;
  c.wheel.async_wait(2h, [](error_code) {});
  const auto passage = c.time.advance_until_idle(1h);
  BOOST_TEST(!passage.idle);
  BOOST_TEST(passage.stuck == 0U);
  BOOST_TEST(!passage.blocked);
}

BOOST_AUTO_TEST_CASE(says_that_something_waits_for_more_than_time)
{
  wheel_in_virtual_time c;
  auto work = std::optional(asio::make_work_guard(c.context));
  const auto blocked = c.time.advance_until_idle(1h);
  BOOST_TEST((blocked.idle && blocked.blocked && blocked.stuck == 0U));
  work.reset();
  // Not even the wheel's own timer, which is set in real time.
  c.wheel.async_wait(10s, [](error_code) {});
  c.context.poll();
  BOOST_TEST(!c.time.advance_until_idle(1h).blocked);
}

BOOST_AUTO_TEST_SUITE_END()
