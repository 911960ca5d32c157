// A wheel's counters and its histogram of lateness.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <limits>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

BOOST_AUTO_TEST_SUITE(stats)

BOOST_AUTO_TEST_CASE(of_a_new_wheel_are_zero)
{
  const context_with_wheel c;
  const auto stats = c.wheel.stats();
  BOOST_TEST(stats.pending == 0U);
  BOOST_TEST(stats.started == 0U);
  BOOST_TEST(stats.expired == 0U);
  BOOST_TEST(stats.cancelled == 0U);
  BOOST_TEST(stats.rejected == 0U);
  BOOST_TEST(stats.wakeups == 0U);
  BOOST_TEST(stats.cascaded == 0U);
  BOOST_TEST(stats.largest_batch == 0U);
  BOOST_TEST(stats.lateness.count() == 0U);
}

BOOST_AUTO_TEST_CASE(count_each_way_a_wait_can_end)
{
  context_with_wheel c(support::with_limit(5));
  outcome ignored;
  for (int i = 0; i < 3; ++i) c.wheel.async_wait(1ms, ignored.recorder());
  wheel_timer timer(c.context, 1h);
  for (int i = 0; i < 2; ++i) timer.async_wait(ignored.recorder());
  for (int i = 0; i < 4; ++i) c.wheel.async_wait(1ms, ignored.recorder());
  auto stats = c.wheel.stats();
  BOOST_TEST(stats.started == 5U);
  BOOST_TEST(stats.pending == 5U);
  BOOST_TEST(stats.rejected == 4U);

  timer.cancel();
  stats = c.wheel.stats();
  BOOST_TEST(stats.cancelled == 2U);
  BOOST_TEST(stats.pending == 3U);

  support::run_to_end(c.context);
  stats = c.wheel.stats();
  BOOST_TEST(stats.started == 5U);
  BOOST_TEST(stats.expired == 3U);
  BOOST_TEST(stats.cancelled == 2U);
  BOOST_TEST(stats.rejected == 4U);
  BOOST_TEST(stats.pending == 0U);
  BOOST_TEST(ignored.calls == 9);
}

BOOST_AUTO_TEST_CASE(of_the_longest_lateness_do_not_wrap)
{
  log2_histogram h;
  for (int i = 0; i < 3; ++i) h.add(std::chrono::nanoseconds::max());
  BOOST_TEST((h.sum() == std::chrono::nanoseconds::max()));
  log2_histogram all = h;
  for (int i = 0; i < 3; ++i) all += h;
  BOOST_TEST((all.sum() == std::chrono::nanoseconds::max()));
  BOOST_TEST(all.count() == 12U);
}

BOOST_AUTO_TEST_CASE(tell_the_largest_batch)
{
  context_with_wheel c;
  outcome ignored;
  const auto deadline = c.wheel.now() + 30ms;
  for (int i = 0; i < 300; ++i) c.wheel.async_wait(deadline, ignored.recorder());
  support::run_to_end(c.context);
  c.wheel.async_wait(1ms, ignored.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.stats().largest_batch == 300U);
}

BOOST_AUTO_TEST_CASE(count_a_wakeup_for_each_tick_that_is_slept_for)
{
  context_with_wheel c(support::with_long_finest_level(1ms));
  outcome ignored;
  for (int i = 0; i < 3; ++i) {
    support::with_time_enough(20ms, [&](std::chrono::milliseconds ahead) {
      const auto before = c.wheel.stats().wakeups;
      const auto deadline = c.wheel.now() + ahead;
      for (int n = 0; n < 10; ++n) c.wheel.async_wait(deadline, ignored.recorder());
      c.context.restart();
      c.context.poll();
      const bool in_time = c.wheel.now() < deadline;
      support::run_to_end(c.context);
      if (in_time) BOOST_TEST(c.wheel.stats().wakeups - before == 1U);
      return in_time;
    });
  }
}

BOOST_AUTO_TEST_CASE(count_each_move_to_a_finer_level)
{
  context_with_wheel c;
  outcome ignored;
  virtual_time time(c.wheel);
  const auto start = c.wheel.now();
  c.wheel.async_wait(start + 100ms, ignored.recorder());  // on the finest level from the start
  time.advance(200ms);
  BOOST_TEST(c.wheel.stats().cascaded == 0U);
  for (int i = 0; i < 5; ++i) c.wheel.async_wait(start + 1h, ignored.recorder());  // on the third
  time.advance(1h);
  BOOST_TEST(c.wheel.stats().cascaded == 2U * 5U);
  BOOST_TEST(c.wheel.stats().expired == 6U);
}

BOOST_AUTO_TEST_CASE(count_as_expired_what_was_past_at_its_start)
{
  context_with_wheel c;
  outcome ignored;
  c.wheel.async_wait(0s, ignored.recorder());
  c.wheel.async_wait(c.wheel.now() - 1s, ignored.recorder());
  BOOST_TEST(c.wheel.stats().pending == 2U);
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.stats().expired == 2U);
  BOOST_TEST(c.wheel.stats().pending == 0U);
  BOOST_TEST(c.wheel.stats().wakeups == 0U);
}

BOOST_AUTO_TEST_CASE(find_nothing_late_in_virtual_time)
{
  context_with_wheel c;
  outcome ignored;
  virtual_time time(c.wheel);
  for (int i = 0; i < 500; ++i) c.wheel.async_wait(i * 1min, ignored.recorder());
  time.advance(24h);
  BOOST_TEST(c.wheel.stats().lateness.count() == 500U);
  BOOST_TEST((c.wheel.stats().lateness.max() < c.wheel.options().tick));
}

BOOST_AUTO_TEST_CASE(tell_how_late_expired_waits_were)
{
  support::with_time_enough(2ms, [](std::chrono::milliseconds ahead) {
    context_with_wheel c;
    outcome wait;
    wheel_timer timer(c.context, ahead);
    for (int i = 0; i < 10; ++i) timer.async_wait(wait.recorder());
    c.context.poll();
    if (!wait.pending()) return false;
    wheel_timer stall(c.context, ahead + 23ms);
    stall.wait();  // Nobody runs the context until long after the deadline.
    const auto at_least = c.wheel.now() - (timer.expiry() + c.wheel.options().tick);
    support::run_to_end(c.context);
    const auto lateness = c.wheel.stats().lateness;
    BOOST_TEST(lateness.count() == 10U);
    BOOST_TEST((lateness.max() >= at_least));
    BOOST_TEST((lateness.percentile(50) >= at_least));
    BOOST_TEST((lateness.percentile(100) == lateness.max()));
    return true;
  });
}

BOOST_AUTO_TEST_CASE(count_what_was_past_at_its_start_from_the_latest_pass)
{
  context_with_wheel c;
  virtual_time time(c.wheel);
  time.advance(1h);
  outcome timely;
  c.wheel.async_wait(1ms, timely.recorder());
  time.advance(2ms);
  BOOST_TEST(timely.succeeded());
  outcome past;
  c.wheel.async_wait(wheel_timer_service::time_point::min(), past.recorder());
  time.advance(0s);
  BOOST_TEST(past.succeeded());
  BOOST_TEST((c.wheel.stats().lateness.max() <= c.wheel.options().tick));
}

BOOST_AUTO_TEST_CASE(do_not_count_cancelled_waits_as_late)
{
  context_with_wheel c;
  outcome wait;
  c.wheel.async_wait(1h, wait.recorder());
  c.wheel.cancel_all();
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.stats().lateness.count() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(histogram)

BOOST_AUTO_TEST_CASE(of_nothing_is_zero_everywhere)
{
  const log2_histogram h;
  BOOST_TEST(h.count() == 0U);
  BOOST_TEST((h.max() == 0ns));
  BOOST_TEST((h.percentile(0) == 0ns));
  BOOST_TEST((h.percentile(100) == 0ns));
}

BOOST_AUTO_TEST_CASE(counts_in_powers_of_two)
{
  log2_histogram h;
  for (const auto d : {0ns, 1ns, 2ns, 3ns, 4ns, 1023ns, 1024ns}) h.add(d);
  BOOST_TEST(h.count() == 7U);
  BOOST_TEST(h.buckets()[0] == 1U);   // 0
  BOOST_TEST(h.buckets()[1] == 1U);   // 1
  BOOST_TEST(h.buckets()[2] == 2U);   // 2, 3
  BOOST_TEST(h.buckets()[3] == 1U);   // 4
  BOOST_TEST(h.buckets()[10] == 1U);  // 1023
  BOOST_TEST(h.buckets()[11] == 1U);  // 1024
}

BOOST_AUTO_TEST_CASE(percentiles_are_exact_to_a_factor_of_two)
{
  log2_histogram h;
  for (int i = 1; i <= 1000; ++i) h.add(i * 1us);
  for (const double p : {1.0, 25.0, 50.0, 90.0, 99.0, 99.9}) {
    const auto exact = std::chrono::nanoseconds{static_cast<std::int64_t>(p * 10'000)};
    BOOST_TEST_CONTEXT("percentile " << p)
    {
      BOOST_TEST((h.percentile(p) >= exact));
      BOOST_TEST((h.percentile(p) <= 2 * exact));
    }
  }
  BOOST_TEST((h.percentile(100) == 1000us));
  BOOST_TEST((h.max() == 1000us));
}

BOOST_AUTO_TEST_CASE(percentiles_never_decrease)
{
  log2_histogram h;
  support::delays delays(0ns, 10ms);
  for (int i = 0; i < 500; ++i) h.add(delays.next());
  auto last = 0ns;
  for (int p = 0; p <= 100; ++p) {
    BOOST_TEST((h.percentile(p) >= last));
    last = h.percentile(p);
  }
  BOOST_TEST((last == h.max()));
}

BOOST_AUTO_TEST_CASE(adds_up)
{
  log2_histogram a;
  log2_histogram b;
  a.add(1us);
  b.add(1ms);
  b.add(1s);
  a += b;
  BOOST_TEST(a.count() == 3U);
  BOOST_TEST((a.max() == 1s));
  a += log2_histogram{};
  BOOST_TEST(a.count() == 3U);
  BOOST_TEST((a.max() == 1s));
}

BOOST_AUTO_TEST_CASE(knows_the_sum)
{
  log2_histogram h, other;
  h.add(3us);
  h.add(-1s);
  other.add(4us);
  h += other;
  BOOST_TEST((h.sum() == 7us));
  h.add(std::chrono::nanoseconds::max());
  BOOST_TEST((h.sum() == std::chrono::nanoseconds::max()));
}

BOOST_AUTO_TEST_CASE(takes_any_duration)
{
  log2_histogram h;
  h.add(std::chrono::nanoseconds::max());
  h.add(std::chrono::nanoseconds::min());
  BOOST_TEST(h.count() == 2U);
  BOOST_TEST((h.max() == std::chrono::nanoseconds::max()));
}

BOOST_AUTO_TEST_SUITE_END()
