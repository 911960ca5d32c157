// Promise 1, never early: no wait succeeds before its deadline by now().
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <deque>
#include <thread>

#include "support/earliest.hpp"
#include "support/early_count.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::early_count;

namespace {

constexpr std::size_t starts = 400;

void check_delays_and_deadlines(wheel_options options)
{
  context_with_wheel c(options);
  early_count count{c.wheel};
  support::delays delays(-1ms, 25ms);
  for (std::size_t i = 0; i < starts; ++i) {
    const auto delay = delays.next();
    const auto deadline = c.wheel.now() + delay;
    c.wheel.async_wait(delay, count.check(support::earliest(c.wheel, delay)));
    c.wheel.async_wait(deadline, count.check(deadline));
    if (i % 50 == 0) c.context.poll();
  }
  support::run_to_end(c.context);
  BOOST_TEST(count.ended == 2 * starts);
  BOOST_TEST(count.early == 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(never_early)

BOOST_AUTO_TEST_CASE(waits_with_any_tick)
{
  for (const auto tick :
       std::array<std::chrono::nanoseconds, 5>{1us, 37us, 1ms, 3'333'333ns, 10ms}) {
    BOOST_TEST_CONTEXT("tick of " << tick.count() << " ns")
    {
      check_delays_and_deadlines(support::with_tick(tick));
    }
  }
}

BOOST_AUTO_TEST_CASE(waits_with_a_coarse_clock)
{
  for (const auto tick : std::array<std::chrono::nanoseconds, 3>{10us, 1ms, 10ms}) {
    auto options = support::with_tick(tick);
    options.clock = clock_source::coarse;
    BOOST_TEST_CONTEXT("tick of " << tick.count() << " ns")
    {
      check_delays_and_deadlines(options);
    }
  }
}

BOOST_AUTO_TEST_CASE(waits_with_slots_so_few_that_most_cascade)
{
  for (const std::size_t slots : {1U, 2U, 8U}) {
    auto options = support::with_tick(100us);
    options.slots = slots;
    BOOST_TEST_CONTEXT(slots << " slots")
    {
      check_delays_and_deadlines(options);
    }
  }
}

BOOST_AUTO_TEST_CASE(waits_whose_deadlines_lie_a_nanosecond_from_a_tick)
{
  constexpr auto tick = 1ms;
  context_with_wheel c(support::with_tick(tick));
  early_count count{c.wheel};
  // The wheel's ticks have an unknown phase: steps of a tick and a bit meet all of them.
  const auto start = c.wheel.now();
  for (int i = 0; i < 250; ++i) {
    const auto deadline = start + i * (tick / 10 + 1ns);
    c.wheel.async_wait(deadline, count.check(deadline));
  }
  support::run_to_end(c.context);
  BOOST_TEST(count.ended == 250U);
  BOOST_TEST(count.early == 0U);
}

BOOST_AUTO_TEST_CASE(waits_started_while_the_loop_is_late)
{
  context_with_wheel c;
  early_count count{c.wheel};
  for (int round = 0; round < 10; ++round) {
    asio::post(c.context, [&] {
      std::this_thread::sleep_for(
        3ms);  // The stall is the point: the wheel's ticks lie behind now.
      const auto deadline = c.wheel.now() + 2ms;
      c.wheel.async_wait(deadline, count.check(deadline));
      c.wheel.async_wait(2ms, count.check(deadline));
    });
  }
  support::run_to_end(c.context);
  BOOST_TEST(count.ended == 20U);
  BOOST_TEST(count.early == 0U);
}

BOOST_AUTO_TEST_CASE(waits_started_by_another_thread)
{
  context_with_wheel c(support::with_tick(200us));
  early_count count{c.wheel};
  auto work = asio::make_work_guard(c.context);
  std::thread other([&] {
    support::delays delays(0ns, 5ms);
    for (std::size_t i = 0; i < starts; ++i) {
      const auto delay = delays.next();
      const auto deadline = c.wheel.now() + delay;
      c.wheel.async_wait(delay, count.check(deadline));
      c.wheel.async_wait(deadline, count.check(deadline));
    }
    work.reset();
  });
  support::run_to_end(c.context);
  other.join();
  BOOST_TEST(count.ended == 2 * starts);
  BOOST_TEST(count.early == 0U);
}

BOOST_AUTO_TEST_CASE(waits_of_timers)
{
  context_with_wheel c(support::with_tick(500us));
  early_count count{c.wheel};
  support::delays delays(-1ms, 15ms);
  std::deque<wheel_timer> timers;
  for (std::size_t i = 0; i < starts; ++i) {
    auto& timer = timers.emplace_back(c.wheel);
    timer.expires_after(delays.next());
    timer.async_wait(count.check(timer.expiry()));
  }
  support::run_to_end(c.context);
  BOOST_TEST(count.ended == starts);
  BOOST_TEST(count.early == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
