// Promise 2, punctual: within one tick on an unloaded loop, and a stalled one catches up at once.
//
// A loaded machine may delay any single wait, and whole rounds of them. So a case measures rounds
// of many and judges the best round's median: a wheel that is a tick late as a rule fails in every
// round, a machine that is busy for a while does not.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using support::context_with_wheel;

namespace {

constexpr auto one_tick = 5ms;

constexpr std::size_t samples = 31;
constexpr int most_rounds = 20;

/// How late waits end that are started one after the other, the loop asleep in between.
/// `start(deadline, handler)` starts one.
template <class Start>
nanoseconds median_lateness(context_with_wheel& c, Start start)
{
  std::vector<nanoseconds> late;
  support::delays delays(1ms, 11ms);
  while (late.size() < samples) {
    const auto deadline = c.wheel.now() + delays.next();
    const auto before = late.size();
    start(deadline, [&, deadline](error_code) { late.push_back(c.wheel.now() - deadline); });
    support::run_until(c.context, [&] { return late.size() > before; });
  }
  const auto middle = late.begin() + static_cast<std::ptrdiff_t>(samples / 2);
  std::nth_element(late.begin(), middle, late.end());
  return *middle;
}

/// Whether the median is within `limit` in one round at least; says the last one otherwise.
template <class Start>
boost::test_tools::assertion_result is_punctual(context_with_wheel& c, nanoseconds limit,
                                                Start start)
{
  nanoseconds late{};
  for (int round = 0; round < most_rounds; ++round) {
    late = median_lateness(c, start);
    if (late <= limit) {
      return true;
    }
  }
  boost::test_tools::assertion_result result(false);
  result.message() << "the median was " << late.count() << " ns late, and never within "
                   << limit.count() << " ns in " << most_rounds << " rounds";
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(punctual)

BOOST_AUTO_TEST_CASE(waits_complete_within_one_tick)
{
  context_with_wheel c(support::with_tick(one_tick));
  BOOST_TEST(is_punctual(
    c, one_tick, [&](auto deadline, auto handler) { c.wheel.async_wait(deadline, handler); }));
}

BOOST_AUTO_TEST_CASE(delays_complete_within_one_tick)
{
  context_with_wheel c(support::with_tick(one_tick));
  BOOST_TEST(is_punctual(c, one_tick, [&](auto deadline, auto handler) {
    c.wheel.async_wait(deadline - c.wheel.now(), handler);
  }));
}

BOOST_AUTO_TEST_CASE(a_coarse_clock_adds_its_grain_at_the_most)
{
  constexpr auto coarsest_grain = 10ms;  // Linux with 100 kernel ticks a second
  auto options = support::with_tick(one_tick);
  options.clock = clock_source::coarse;
  context_with_wheel c(options);
  BOOST_TEST(is_punctual(c, one_tick + coarsest_grain, [&](auto deadline, auto handler) {
    c.wheel.async_wait(deadline - c.wheel.now(), handler);
  }));
}

BOOST_AUTO_TEST_CASE(an_earlier_wait_wakes_a_wheel_that_sleeps_for_a_later_one)
{
  context_with_wheel c(support::with_tick(one_tick));
  support::outcome far;
  c.wheel.async_wait(1h, far.recorder());
  BOOST_TEST(is_punctual(
    c, one_tick, [&](auto deadline, auto handler) { c.wheel.async_wait(deadline, handler); }));
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(far.aborted());
}

BOOST_AUTO_TEST_CASE(a_stalled_loop_catches_up_in_one_pass)
{
  constexpr std::size_t many = 500;
  context_with_wheel c(support::with_tick(10us));
  std::size_t ended = 0;
  const auto first = c.wheel.now() + 200ms;
  for (std::size_t i = 0; i < many; ++i) {
    c.wheel.async_wait(first + i * 40us, [&](error_code ec) { ended += ec ? 0 : 1; });
  }
  c.context.poll();
  std::this_thread::sleep_until(first + many * 40us);  // The stall, of 2,000 ticks and more.
  const auto before = c.wheel.stats().wakeups;
  support::run_to_end(c.context);
  BOOST_TEST(ended == many);
  BOOST_TEST(c.wheel.stats().wakeups - before == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
