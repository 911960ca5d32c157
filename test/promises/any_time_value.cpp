// Promise 11, any time value: the past is now, the end of time is never.
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

namespace {

/// Calls `check` with a wheel of every extreme shape.
template <class Check>
void with_each_shape(Check check)
{
  for (const std::chrono::nanoseconds tick : {1us, 1000us, 86'400'000'000us}) {
    for (const std::size_t slots : {1U, 65536U}) {
      for (const auto clock : {clock_source::precise, clock_source::coarse}) {
        wheel_options options;
        options.tick = tick;
        options.slots = slots;
        options.clock = clock;
        options.shards = 1;
        BOOST_TEST_CONTEXT(slots << " slots of " << tick.count() << " ns")
        {
          context_with_wheel c(options);
          check(c);
        }
      }
    }
  }
}

template <class Time>
void check_is_over(context_with_wheel& c, Time time)
{
  outcome wait;
  c.wheel.async_wait(time, wait.recorder());
  BOOST_TEST(wait.pending());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

template <class Time>
void check_is_far_away(context_with_wheel& c, Time time)
{
  outcome wait;
  c.wheel.async_wait(time, wait.recorder());
  BOOST_TEST(c.wheel.pending() == 1U);
  c.context.restart();
  c.context.run_for(2ms);
  BOOST_TEST(wait.pending());
  BOOST_TEST(c.wheel.stats().wakeups == 0U);
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(any_time_value)

BOOST_AUTO_TEST_CASE(no_delay_or_less_is_over_at_once)
{
  with_each_shape([](context_with_wheel& c) {
    for (const auto delay :
         {duration::min(), duration::min() + 1ns, duration{-24h}, duration{-1}, duration::zero()}) {
      check_is_over(c, delay);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_deadline_in_the_past_is_over_at_once)
{
  with_each_shape([](context_with_wheel& c) {
    // A coarse clock is ahead.
    const auto now = std::min(c.wheel.now(), std::chrono::steady_clock::now());
    for (const auto deadline :
         {time_point::min(), time_point::min() + 1ns, time_point{}, now - 24h, now - 1ns, now}) {
      check_is_over(c, deadline);
    }
  });
}

BOOST_AUTO_TEST_CASE(the_end_of_time_never_comes)
{
  with_each_shape([](context_with_wheel& c) {
    check_is_far_away(c, duration::max());
    check_is_far_away(c, time_point::max());
  });
}

BOOST_AUTO_TEST_CASE(almost_the_end_of_time_is_far_away)
{
  with_each_shape([](context_with_wheel& c) {
    check_is_far_away(c, duration::max() - 1ns);
    check_is_far_away(c, time_point::max() - 1ns);
    check_is_far_away(c, time_point::max() - 24h);
    check_is_far_away(c, duration{24h} * 36525);
  });
}

BOOST_AUTO_TEST_CASE(one_nanosecond_is_a_delay)
{
  for (const std::chrono::nanoseconds tick : {1us, 1000us}) {
    context_with_wheel c(support::with_tick(tick));
    const auto deadline = c.wheel.now() + 1ns;
    check_is_over(c, deadline);
    check_is_over(c, 1ns);
    BOOST_TEST((c.wheel.now() >= deadline));
  }
}

BOOST_AUTO_TEST_CASE(past_present_and_never_live_together)
{
  support::wheel_in_virtual_time v;
  outcome past;
  outcome soon;
  outcome never;
  v.wheel.async_wait(time_point::max(), never.recorder());
  v.wheel.async_wait(2ms, soon.recorder());
  v.wheel.async_wait(time_point::min(), past.recorder());
  v.time.advance(0ms);
  BOOST_TEST(past.succeeded());
  BOOST_TEST(soon.pending());
  v.time.advance(2ms);
  BOOST_TEST(soon.succeeded());
  BOOST_TEST(never.pending());
  BOOST_TEST(v.wheel.cancel_all() == 1U);
  support::run_to_end(v.context);
  BOOST_TEST(never.aborted());
}

BOOST_AUTO_TEST_CASE(timers_take_any_expiry)
{
  with_each_shape([](context_with_wheel& c) {
    wheel_timer timer(c.wheel);
    for (const auto delay : {duration::min(), duration::zero()}) {
      outcome wait;
      timer.expires_after(delay);
      timer.async_wait(wait.recorder());
      support::run_to_end(c.context);
      BOOST_TEST(wait.succeeded());
    }
    for (const auto delay : {duration::max() - 1ns, duration::max()}) {
      outcome wait;
      timer.expires_after(delay);
      timer.async_wait(wait.recorder());
      c.context.restart();
      c.context.poll();
      BOOST_TEST(wait.pending());
      BOOST_TEST(timer.cancel() == 1U);
      support::run_to_end(c.context);
      BOOST_TEST(wait.aborted());
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
