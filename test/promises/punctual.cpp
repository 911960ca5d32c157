// Promise 2, punctual: within one tick on an unloaded loop, and a stalled one catches up at once.
//
// A loaded machine is late itself. So each case compares waits with a steady_timer of the same
// deadline in the same loop, and judges the median: a wheel that is mostly a tick late fails.
#include <algorithm>
#include <asio_wheel/timeout_after.hpp>
#include <asio_wheel/virtual_time.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using support::context_with_wheel;

namespace {

constexpr auto one_tick = 5ms;

/// How much later than a steady_timer of the same deadline waits end. They start one after the
/// other, and the loop sleeps in between. `start(deadline, handler)` starts one.
template <class Start>
nanoseconds median_lateness(context_with_wheel& c, std::size_t samples, Start start)
{
  std::vector<nanoseconds> late;
  support::delays delays(1ms, 11ms);
  asio::steady_timer reference(c.context);
  for (std::size_t i = 0; i < samples; ++i) {
    const auto deadline = c.wheel.now() + delays.next();
    std::optional<time_point> in_time;
    std::optional<time_point> ended;
    reference.expires_at(deadline);
    reference.async_wait([&](error_code) { in_time = wheel_timer_service::clock_type::now(); });
    start(deadline, [&](error_code) { ended = wheel_timer_service::clock_type::now(); });
    support::run_until(c.context, [&] { return in_time && ended; });
    late.push_back(*ended - *in_time);
  }
  const auto middle = late.begin() + static_cast<std::ptrdiff_t>(samples / 2);
  std::nth_element(late.begin(), middle, late.end());
  return *middle;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(punctual)

BOOST_AUTO_TEST_CASE(waits_complete_within_one_tick)
{
  context_with_wheel c(support::with_tick(one_tick));
  const auto late = median_lateness(
    c, 61, [&](auto deadline, auto handler) { c.wheel.async_wait(deadline, handler); });
  BOOST_TEST(late.count() <= nanoseconds(one_tick).count());
}

BOOST_AUTO_TEST_CASE(delays_complete_within_one_tick)
{
  context_with_wheel c(support::with_tick(one_tick));
  const auto late = median_lateness(c, 61, [&](auto deadline, auto handler) {
    c.wheel.async_wait(deadline - c.wheel.now(), handler);
  });
  BOOST_TEST(late.count() <= nanoseconds(one_tick).count());
}

BOOST_AUTO_TEST_CASE(a_coarse_clock_adds_its_grain_at_the_most)
{
  constexpr auto coarsest_grain = 10ms;  // Linux with 100 kernel ticks a second
  auto options = support::with_tick(one_tick);
  options.clock = clock_source::coarse;
  context_with_wheel c(options);
  const auto late = median_lateness(c, 31, [&](auto deadline, auto handler) {
    c.wheel.async_wait(deadline - c.wheel.now(), handler);
  });
  BOOST_TEST(late.count() <= nanoseconds(one_tick + coarsest_grain).count());
}

BOOST_AUTO_TEST_CASE(an_earlier_wait_wakes_a_wheel_that_sleeps_for_a_later_one)
{
  context_with_wheel c(support::with_tick(one_tick));
  support::outcome later;
  c.wheel.async_wait(1h, later.recorder());
  const auto late = median_lateness(
    c, 61, [&](auto deadline, auto handler) { c.wheel.async_wait(deadline, handler); });
  BOOST_TEST(late.count() <= nanoseconds(one_tick).count());
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(later.aborted());
}

BOOST_AUTO_TEST_CASE(a_stalled_loop_catches_up_in_one_pass)
{
  constexpr std::size_t many = 500;
  support::with_time_enough(50ms, [&](std::chrono::milliseconds ahead) {
    context_with_wheel c(support::with_tick(10us));
    std::size_t ended = 0;
    const auto first = c.wheel.now() + ahead;
    for (std::size_t i = 0; i < many; ++i) {
      c.wheel.async_wait(first + i * 40us, [&](error_code ec) { ended += ec ? 0 : 1; });
    }
    c.context.poll();
    if (c.wheel.now() >= first) return false;
    std::this_thread::sleep_until(first + many * 40us);  // The stall, of 2,000 ticks and more.
    const auto before = c.wheel.stats().wakeups;
    support::run_to_end(c.context);
    BOOST_TEST(ended == many);
    BOOST_TEST(c.wheel.stats().wakeups - before == 1U);
    return true;
  });
}

// Counts functions instead of time: those of one tick once sent each other round and round.
BOOST_AUTO_TEST_CASE(deadlines_on_strands_do_not_hold_each_other_up)
{
  constexpr std::size_t operations = 1000;
  context_with_wheel c;
  std::size_t functions = 0;
  virtual_time time(c.wheel, [&] {
    c.context.restart();
    functions += c.context.poll();
  });
  std::vector<asio::steady_timer> objects;
  objects.reserve(operations);
  std::size_t timed_out = 0;
  for (std::size_t i = 0; i < operations; ++i) {
    auto& object =
      objects.emplace_back(asio::make_strand(c.context), asio::steady_timer::time_point::max());
    object.async_wait(
      timeout_after(1s, [&](error_code ec) { timed_out += ec == asio::error::timed_out; }));
  }
  time.advance(1s + one_tick);
  BOOST_TEST(timed_out == operations);
  BOOST_TEST(functions < 20 * operations);
}

BOOST_AUTO_TEST_SUITE_END()
