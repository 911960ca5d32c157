// Netty's HashedWheelTimer: one thread and one wheel of tickDuration x ticksPerWheel for the
// approximate timeouts of many connections. In our terms: a Timeout is a wait, its task a handler,
// newTimeout() is async_wait(), stop() is cancel_all().
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/outcome.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::outcome;
using support::wheel_in_virtual_time;

namespace {

wheel_options shape(duration tick, std::size_t slots)
{
  wheel_options options;
  options.tick = tick;
  options.slots = slots;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(netty)

BOOST_AUTO_TEST_CASE(ticks_per_wheel_are_rounded_up_to_a_power_of_two)
{
  const auto slots_made_of = [](std::size_t slots) {
    return wheel_in_virtual_time(shape(100ms, slots)).wheel.options().slots;
  };
  BOOST_TEST(slots_made_of(2) == 2U);
  BOOST_TEST(slots_made_of(60) == 64U);
  BOOST_TEST(slots_made_of(512) == 512U);
  BOOST_TEST(slots_made_of(513) == 1024U);
  BOOST_CHECK_THROW(wheel_in_virtual_time(shape(100ms, 0)), std::invalid_argument);
  BOOST_CHECK_THROW(wheel_in_virtual_time(shape(0ms, 512)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(deadlines_are_rounded_up_to_a_tick)
{
  wheel_in_virtual_time c(shape(100ms, 512));
  std::vector<duration> seen;
  for (const duration delay : std::vector<duration>{1ns, 100ms, 101ms, 200ms, 250ms}) {
    c.wheel.async_wait(c.start + delay, [&](error_code) { seen.push_back(c.elapsed()); });
  }
  c.time.advance(1s);
  BOOST_TEST((seen == std::vector<duration>{100ms, 100ms, 200ms, 200ms, 300ms}));
}

BOOST_AUTO_TEST_CASE(timeouts_beyond_the_limit_are_rejected)
{
  wheel_in_virtual_time c(support::with_limit(2));
  std::array<outcome, 3> waits;
  for (auto& wait : waits) c.wheel.async_wait(1s, wait.recorder());
  c.time.advance(0s);
  BOOST_TEST(waits[0].pending());
  BOOST_TEST(waits[1].pending());
  BOOST_TEST(waits[2].calls == 1);
  BOOST_TEST((waits[2].error == wheel_errc::too_many_pending));
  BOOST_TEST(c.wheel.stats().rejected == 1U);
}

BOOST_AUTO_TEST_CASE(a_timeout_is_accepted_again_once_one_was_cancelled)
{
  wheel_in_virtual_time c(support::with_limit(1));
  wheel_timer cancelled(c.wheel, 1s);
  outcome first;
  outcome second;
  cancelled.async_wait(first.recorder());
  cancelled.cancel();
  c.wheel.async_wait(1s, second.recorder());
  c.time.advance(1s);
  BOOST_TEST(first.aborted());
  BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE(a_timeout_is_accepted_again_once_one_has_expired)
{
  wheel_in_virtual_time c(support::with_limit(1));
  outcome first;
  outcome second;
  c.wheel.async_wait(1s, first.recorder());
  c.time.advance(1s);
  c.wheel.async_wait(1s, second.recorder());
  c.time.advance(1s);
  BOOST_TEST(first.succeeded());
  BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE(pending_timeouts_are_counted)
{
  wheel_in_virtual_time c;
  wheel_timer cancelled(c.wheel, 1s);
  outcome waits;
  cancelled.async_wait(waits.recorder());
  c.wheel.async_wait(1s, waits.recorder());
  c.wheel.async_wait(1min, waits.recorder());
  BOOST_TEST(c.wheel.pending() == 3U);
  cancelled.cancel();
  BOOST_TEST(c.wheel.pending() == 2U);
  c.time.advance(1s);
  BOOST_TEST(c.wheel.pending() == 1U);
  c.time.advance(1min);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(stop_hands_back_what_was_unprocessed)
{
  wheel_in_virtual_time c;
  std::set<std::string> processed;
  std::set<std::string> unprocessed;
  const auto start = [&](const std::string& name, duration delay) {
    c.wheel.async_wait(delay, [&, name](error_code ec) {
      (ec == asio::error::operation_aborted ? unprocessed : processed).insert(name);
    });
  };
  start("soon", 1s);
  start("later", 1min);
  start("much later", 24h);
  c.time.advance(1s);
  BOOST_TEST(c.wheel.cancel_all() == 2U);
  BOOST_TEST(unprocessed.empty());  // None of them in the middle of the stop.
  c.time.advance(0s);
  BOOST_TEST((processed == std::set<std::string>{"soon"}));
  BOOST_TEST((unprocessed == std::set<std::string>{"later", "much later"}));
  BOOST_TEST(c.wheel.cancel_all() == 0U);
}

BOOST_AUTO_TEST_CASE(a_cancelled_timeout_does_not_expire)
{
  wheel_in_virtual_time c;
  wheel_timer timer(c.wheel, 1s);
  outcome wait;
  timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel() == 1U);
  BOOST_TEST(timer.cancel() == 0U);
  BOOST_TEST(c.time.advance(1min) == 0U);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(an_expired_timeout_cannot_be_cancelled)
{
  wheel_in_virtual_time c;
  wheel_timer timer(c.wheel, 1s);
  outcome wait;
  timer.async_wait(wait.recorder());
  c.time.advance(1s);
  BOOST_TEST(timer.cancel() == 0U);
  c.time.advance(0s);
  BOOST_TEST(wait.succeeded());
}

// So it is with Netty, but only until its worker has reached the timeout's tick.
BOOST_AUTO_TEST_CASE(a_timeout_can_be_cancelled_until_its_task_is_run)
{
  wheel_in_virtual_time c;
  wheel_timer second(c.wheel, 1s);
  outcome wait;
  c.wheel.async_wait(1s, [&](error_code) {
    BOOST_TEST(wait.pending());
    BOOST_TEST(second.cancel() == 1U);
  });
  second.async_wait(wait.recorder());
  c.time.advance(1s);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(a_throwing_task_does_not_stop_the_wheel)
{
  wheel_in_virtual_time c;
  outcome before;
  outcome after;
  outcome later;
  c.wheel.async_wait(1s, before.recorder());
  c.wheel.async_wait(1s, [](error_code) { throw std::runtime_error("task"); });
  c.wheel.async_wait(1s, after.recorder());
  c.wheel.async_wait(1min, later.recorder());
  BOOST_CHECK_THROW(c.time.advance(1h), std::runtime_error);
  BOOST_TEST(before.succeeded());
  c.time.advance(1h);
  BOOST_TEST(after.succeeded());
  BOOST_TEST(later.succeeded());
}

BOOST_AUTO_TEST_CASE(a_task_may_file_itself_again)
{
  wheel_in_virtual_time c;
  std::vector<duration> seen;
  std::function<void(error_code)> task = [&](error_code) {
    seen.push_back(c.elapsed());
    if (seen.size() < 4) c.wheel.async_wait(200ms, task);
  };
  c.wheel.async_wait(200ms, task);
  c.time.advance(1min);
  BOOST_TEST((seen == std::vector<duration>{200ms, 400ms, 600ms, 800ms}));
}

BOOST_AUTO_TEST_CASE(a_task_runs_on_the_executor_it_is_given)
{
  wheel_in_virtual_time c;
  const auto task_executor = asio::make_strand(c.context);
  bool on_it = false;
  c.wheel.async_wait(1s, asio::bind_executor(task_executor, [&](error_code) {
                       on_it = task_executor.running_in_this_thread();
                     }));
  c.time.advance(1s);
  BOOST_TEST(on_it);
}

BOOST_AUTO_TEST_CASE(a_delay_may_be_many_revolutions_long)
{
  constexpr duration tick = 10ms;
  constexpr std::size_t slots = 32;
  constexpr duration revolution = slots * tick;
  wheel_in_virtual_time c(shape(tick, slots));
  std::vector<duration> delays;
  for (const int revolutions : {0, 1, 2, 3, 10, 100, 1000, 100'000}) {
    for (const int ticks : {1, 17, 31}) delays.push_back(revolutions * revolution + ticks * tick);
  }
  std::vector<duration> seen;
  for (const duration delay : delays)
    c.wheel.async_wait(delay, [&](error_code) { seen.push_back(c.elapsed()); });
  c.time.advance(24h);
  BOOST_TEST((seen == delays));
}

BOOST_AUTO_TEST_CASE(the_longest_delay_overflows_nothing)
{
  wheel_in_virtual_time c;
  outcome longest;
  c.wheel.async_wait(duration::max(), longest.recorder());
  BOOST_TEST(c.time.advance(365 * 24h) == 0U);
  BOOST_TEST(c.wheel.pending() == 1U);
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  c.time.advance(0s);
  BOOST_TEST(longest.aborted());
}

BOOST_AUTO_TEST_SUITE_END()
