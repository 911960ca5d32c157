// wheel_interval: which ticks there are, and who gets them. To have late ticks, cases let the
// interval begin in the past.
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/run.hpp"
#include "support/tick_outcome.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::tick_outcome;

namespace {

/// Takes `n` ticks, one after the other.
template <class Interval>
std::vector<time_point> take(context_with_wheel& c, Interval& interval, int n)
{
  std::vector<time_point> ticks;
  for (int i = 0; i < n; ++i) {
    tick_outcome tick;
    interval.async_tick(tick.recorder());
    support::run_to_end(c.context);
    BOOST_REQUIRE(tick.succeeded());
    BOOST_TEST((c.wheel.now() >= tick.at));
    ticks.push_back(tick.at);
  }
  return ticks;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interval)

BOOST_AUTO_TEST_CASE(has_its_first_tick_at_once_and_the_next_one_period_later)
{
  context_with_wheel c;
  const auto before = c.wheel.now();
  wheel_interval interval(c.wheel, 3ms);
  const auto after = c.wheel.now();
  const auto ticks = take(c, interval, 2);
  BOOST_TEST((before <= ticks[0] && ticks[0] <= after));
  BOOST_TEST((ticks[1] == ticks[0] + 3ms));
  BOOST_TEST((interval.period() == 3ms));
}

BOOST_AUTO_TEST_CASE(begins_when_it_is_told_to)
{
  context_with_wheel c;
  const auto first = c.wheel.now() + 5ms;
  wheel_interval interval(c.wheel, first, 1ms);
  BOOST_TEST((take(c, interval, 1)[0] == first));
}

BOOST_AUTO_TEST_CASE(does_not_drift)
{
  for (const auto rule : {missed_tick::burst, missed_tick::skip}) {
    context_with_wheel c;
    wheel_interval interval(c.wheel, 700us, rule);
    const auto ticks = take(c, interval, 20);
    for (const auto tick : ticks) BOOST_TEST(((tick - ticks[0]) % 700us == 0ns));
    if (rule == missed_tick::burst) BOOST_TEST((ticks.back() == ticks[0] + 19 * 700us));
  }
}

BOOST_AUTO_TEST_CASE(refuses_a_period_that_is_not_positive)
{
  context_with_wheel c;
  BOOST_CHECK_EXCEPTION(wheel_interval(c.wheel, -1ms), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()) ==
           "wheel_interval: period is -1000000ns; it must be more than 0ns";
  });
  BOOST_CHECK_THROW(wheel_interval(c.wheel, 0ms), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(paces_a_coroutine)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    wheel_interval interval(c.wheel, 1ms);
    const time_point first = co_await interval.async_tick();
    const time_point second = co_await interval.async_tick(asio::use_awaitable);
    auto [ec, third] = co_await interval.async_tick(asio::as_tuple(asio::use_awaitable));
    BOOST_TEST(!ec);
    BOOST_TEST((second == first + 1ms));
    BOOST_TEST((third == first + 2ms));
  });
}

BOOST_AUTO_TEST_CASE(in_a_burst_takes_every_missed_tick)
{
  context_with_wheel c;
  const auto first = c.wheel.now() - 40ms;
  wheel_interval interval(c.wheel, first, 10ms);
  const auto ticks = take(c, interval, 6);
  for (int i = 0; i < 6; ++i) BOOST_TEST((ticks[static_cast<std::size_t>(i)] == first + i * 10ms));
}

BOOST_AUTO_TEST_CASE(in_a_burst_leaves_room_for_other_work)
{
  context_with_wheel c;
  wheel_interval interval(c.wheel, c.wheel.now() - 1h, 1ms);
  int ticks = 0;
  int others = 0;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    for (; ticks < 200; ++ticks) {
      asio::post(c.context, [&] { ++others; });
      co_await interval.async_tick();
      BOOST_TEST(others == ticks + 1);
    }
  });
  BOOST_TEST(ticks == 200);
}

BOOST_AUTO_TEST_CASE(delayed_begins_a_new_rhythm_from_now)
{
  context_with_wheel c;
  const auto first = c.wheel.now() - 1h;
  wheel_interval interval(c.wheel, first, 2ms, missed_tick::delay);
  BOOST_TEST((take(c, interval, 1)[0] == first));
  const auto after = c.wheel.now();
  const auto second = take(c, interval, 1)[0];
  BOOST_TEST((second > first + 1h + 2ms));
  BOOST_TEST((second <= after + 2ms));
}

BOOST_AUTO_TEST_CASE(delayed_keeps_its_rhythm_when_it_is_no_later_than_two_ticks_of_the_wheel)
{
  context_with_wheel c(support::with_tick(20ms));
  const auto first = c.wheel.now() - 10ms;
  wheel_interval interval(c.wheel, first, 50ms, missed_tick::delay);
  take(c, interval, 1);
  const bool in_time = c.wheel.now() <= first + 40ms;
  const auto second = take(c, interval, 1)[0];
  if (in_time) BOOST_TEST((second == first + 50ms));
}

BOOST_AUTO_TEST_CASE(skipping_goes_on_in_its_rhythm_with_what_is_still_to_come)
{
  context_with_wheel c;
  const auto first = c.wheel.now() - 1h - 700us;
  const auto before = c.wheel.now();
  wheel_interval interval(c.wheel, first, 1ms, missed_tick::skip);
  const auto ticks = take(c, interval, 2);
  BOOST_TEST((ticks[0] == first));
  BOOST_TEST((ticks[1] > before));
  BOOST_TEST(((ticks[1] - first) % 1ms == 0ns));
}

BOOST_AUTO_TEST_CASE(loses_no_tick_when_it_is_cancelled)
{
  context_with_wheel c;
  const auto first = c.wheel.now() + 3ms;
  wheel_interval interval(c.wheel, first, 1h);
  tick_outcome cancelled;
  interval.async_tick(cancelled.recorder());
  interval.cancel();
  BOOST_TEST(c.wheel.pending() == 0U);
  support::run_to_end(c.context);
  BOOST_TEST(cancelled.aborted());
  BOOST_TEST((take(c, interval, 1)[0] == first));
}

BOOST_AUTO_TEST_CASE(once_reset_ticks_one_period_from_then)
{
  context_with_wheel c;
  for (const auto first : {c.wheel.now() - 1h, c.wheel.now() + 1h}) {
    wheel_interval interval(c.wheel, first, 3ms);
    const auto before = c.wheel.now();
    interval.reset();
    const auto after = c.wheel.now();
    const auto ticks = take(c, interval, 2);
    BOOST_TEST((before + 3ms <= ticks[0] && ticks[0] <= after + 3ms));
    BOOST_TEST((ticks[1] == ticks[0] + 3ms));
  }
}

BOOST_AUTO_TEST_CASE(once_reset_makes_those_who_wait_wait_for_the_new_tick)
{
  context_with_wheel c;
  for (const auto first : {c.wheel.now() - 1h, c.wheel.now() + 1h}) {
    wheel_interval interval(c.wheel, first, 3ms);
    tick_outcome tick;
    interval.async_tick(tick.recorder());
    const auto before = c.wheel.now();
    interval.reset();
    support::run_to_end(c.context);
    BOOST_TEST(tick.succeeded());
    BOOST_TEST((tick.at >= before + 3ms));
    BOOST_TEST((tick.at <= c.wheel.now()));
  }
}

BOOST_AUTO_TEST_CASE(once_reset_can_still_be_cancelled)
{
  context_with_wheel c;
  wheel_interval interval(c.wheel, c.wheel.now() + 1h, 1h);
  tick_outcome first;
  tick_outcome second;
  interval.async_tick(first.recorder());
  interval.reset();
  interval.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(first.aborted());
  interval.async_tick(second.recorder());
  interval.cancel();
  interval.reset();
  support::run_to_end(c.context);
  BOOST_TEST(second.aborted());
}

BOOST_AUTO_TEST_CASE(cancelled_with_all_waits_stays_so_when_it_is_reset)
{
  context_with_wheel c;
  wheel_interval interval(c.wheel, c.wheel.now() + 1h, 1h);
  tick_outcome before;
  tick_outcome after;
  interval.async_tick(before.recorder());
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  interval.async_tick(after.recorder());
  interval.reset();
  c.context.poll();
  BOOST_TEST(before.aborted());
  BOOST_TEST(after.pending());
  BOOST_TEST(c.wheel.pending() == 1U);
}

BOOST_AUTO_TEST_CASE(may_end_in_the_handler_of_its_tick)
{
  context_with_wheel c;
  auto interval = std::make_unique<wheel_interval>(c.wheel, 1ms);
  tick_outcome other;
  bool called = false;
  interval->async_tick([&](error_code, time_point) {
    called = true;
    interval->async_tick(other.recorder());
    interval.reset();
  });
  support::run_to_end(c.context);
  BOOST_TEST(called);
  BOOST_TEST(other.aborted());
}

BOOST_AUTO_TEST_CASE(may_outlive_its_context)
{
  std::optional<wheel_interval> interval;
  {
    context_with_wheel c;
    interval.emplace(c.wheel, 1ms);
  }
  interval->reset();
  interval->cancel();
  BOOST_TEST((interval->period() == 1ms));
}

BOOST_AUTO_TEST_CASE(may_never_tick)
{
  context_with_wheel c;
  wheel_interval no_second(c.wheel, duration::max());
  wheel_interval no_first(c.wheel, time_point::max(), 1ms);
  BOOST_TEST(take(c, no_second, 1).size() == 1U);
  std::array<tick_outcome, 2> ticks;
  no_second.async_tick(ticks[0].recorder());
  no_first.async_tick(ticks[1].recorder());
  c.context.restart();
  c.context.poll();
  for (auto& tick : ticks) BOOST_TEST(tick.pending());
  no_second.cancel();
  no_first.cancel();
  support::run_to_end(c.context);
  for (auto& tick : ticks) BOOST_TEST(tick.aborted());
}

BOOST_AUTO_TEST_CASE(that_nobody_waits_for_lets_the_context_end)
{
  context_with_wheel c;
  wheel_interval interval(c.wheel, 1ms);
  take(c, interval, 1);
  c.context.restart();
  BOOST_TEST(c.context.run() == 0U);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
