// Kafka's timer: a hierarchy of wheels. A delay beyond one wheel overflows into the next, coarser
// one, and comes down again as its time draws near. A queue of the occupied buckets drives it, so
// that empty buckets cost nothing. In our terms: a bucket is a slot, an overflow wheel a level, a
// reinsertion a cascade.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::outcome;
using support::wheel_in_virtual_time;

namespace {

/// Ticks of 1 ms and wheels of 20 buckets, as in Kafka, which are rounded up to 32.
constexpr wheel_options kafkas()
{
  wheel_options options;
  options.slots = 20;
  return options;
}

/// How often a wait of this length moves before it expires.
std::uint64_t cascades_of(duration delay)
{
  wheel_in_virtual_time c(kafkas());
  outcome wait;
  c.wheel.async_wait(delay, wait.recorder());
  c.time.advance(delay);
  BOOST_TEST(wait.succeeded());
  return c.wheel.stats().cascaded;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kafka)

BOOST_AUTO_TEST_CASE(a_wait_of_any_level_expires_at_its_tick)
{
  wheel_in_virtual_time c(kafkas());
  std::vector<duration> expected;
  std::vector<duration> seen;
  for (duration delay = 1ms; delay < 365 * 24h; delay *= 3) {
    expected.push_back(delay);
    c.wheel.async_wait(delay, [&](error_code) { seen.push_back(c.elapsed()); });
  }
  c.time.advance(365 * 24h);
  BOOST_TEST((seen == expected));
}

BOOST_AUTO_TEST_CASE(waits_of_all_levels_expire_in_order)
{
  wheel_in_virtual_time c(kafkas());
  support::delays delays(1ms, 24h);
  std::vector<time_point> expired;
  for (int i = 0; i < 2000; ++i) {
    const auto deadline = c.start + delays.next();
    c.wheel.async_wait(deadline, [&, deadline](error_code) {
      BOOST_TEST((c.wheel.now() >= deadline));
      BOOST_TEST((c.wheel.now() - deadline < c.wheel.options().tick));
      expired.push_back(c.wheel.now());
    });
  }
  c.time.advance(24h + 1ms);
  BOOST_TEST(expired.size() == 2000U);
  BOOST_TEST(std::is_sorted(expired.begin(), expired.end()));
}

BOOST_AUTO_TEST_CASE(a_wait_comes_down_by_a_level_at_least_each_time_it_is_moved)
{
  // The finest level reaches 32 ticks, and each level eight times as far as the one below it.
  BOOST_TEST(cascades_of(20ms) == 0U);
  std::uint64_t level = 0;
  for (const duration reach : {256ms, 2'048ms, 16'384ms, 131'072ms}) {
    ++level;
    const auto cascades = cascades_of(reach - 1ms);
    BOOST_TEST(cascades >= 1U);
    BOOST_TEST(cascades <= level);
  }
}

BOOST_AUTO_TEST_CASE(the_clock_goes_from_one_occupied_bucket_to_the_next)
{
  wheel_in_virtual_time c(kafkas());
  const std::vector<duration> delays{2ms, 1s, 10min, 24h, 365 * 24h};
  outcome waits;
  for (const duration delay : delays) c.wheel.async_wait(delay, waits.recorder());
  std::vector<duration> steps;
  while (c.time.advance_to_next()) steps.push_back(c.elapsed());
  BOOST_TEST((steps == delays));
  BOOST_TEST(waits.calls == 5);
}

BOOST_AUTO_TEST_CASE(an_empty_bucket_wakes_nobody)
{
  // In real time, with 150 ticks, well inside the finest level, so that nothing cascades.
  support::context_with_wheel c(support::with_tick(100us));
  outcome waits;
  for (const duration delay : {2ms, 8ms, 15ms}) c.wheel.async_wait(delay, waits.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(waits.calls == 3);
  BOOST_TEST(c.wheel.stats().wakeups <= 3U);
}

BOOST_AUTO_TEST_CASE(a_bucket_expires_as_a_whole)
{
  wheel_in_virtual_time c(kafkas());
  outcome waits;
  for (int i = 0; i < 500; ++i) c.wheel.async_wait(1h, waits.recorder());
  BOOST_TEST(c.time.advance_to_next());
  BOOST_TEST(waits.calls == 500);
  BOOST_TEST((c.elapsed() == 1h));
  BOOST_TEST(c.wheel.stats().largest_batch == 500U);
}

BOOST_AUTO_TEST_CASE(a_request_that_is_satisfied_in_time_leaves_its_bucket_at_once)
{
  wheel_in_virtual_time c(kafkas());
  std::deque<wheel_timer> requests;
  outcome satisfied;
  for (int i = 1; i <= 1000; ++i)
    requests.emplace_back(c.wheel, i * 100ms).async_wait(satisfied.recorder());
  BOOST_TEST(c.wheel.pending() == 1000U);
  for (auto& request : requests) BOOST_TEST(request.cancel() == 1U);
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(!c.time.advance_to_next());
  BOOST_TEST(satisfied.calls == 1000);
  BOOST_TEST((satisfied.error == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_SUITE_END()
