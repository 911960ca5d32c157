// Fault: deadlines at the edges of a time_point, of a level of the wheel, of a tick, and of the
// coarse clock's grain.
//
// Each completes exactly at the first tick that is not before it. The past completes at once, and
// the end of time never comes.
#include <time.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "support/earliest.hpp"
#include "support/manual_operation.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/tick_outcome.hpp"
#include "support/virtual_wheel.hpp"

using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;
using support::wheel_in_virtual_time;

namespace {

constexpr std::array past{time_point::min(), time_point::min() + 1ns, time_point{} - 1ns,
                          time_point{}};
constexpr std::array never_reached{time_point::max() - 24h, time_point::max() - 1ns,
                                   time_point::max()};

/// Time points around `now`, with the most distant ones that a duration can reach.
std::vector<time_point> around(time_point now)
{
  std::vector<time_point> all(past.begin(), past.end());
  for (const duration d : {duration::max(), duration{24h}, duration{1}, duration{}}) {
    all.push_back(now - d);
    if (now < time_point::max() - d) all.push_back(now + d);
  }
  all.insert(all.end(), never_reached.begin(), never_reached.end());
  return all;
}

/// Whether a wait for `deadline` has ended by `now` and not before.
bool ended_in_time(const outcome& wait, time_point deadline, time_point now)
{
  return deadline <= now ? wait.succeeded() : wait.pending();
}

time_point coarse_reading()
{
  ::timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return time_point{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
}

wheel_options shape(std::chrono::nanoseconds tick, std::size_t slots)
{
  auto options = support::with_tick(tick);
  options.slots = slots;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(edge_of_time)

BOOST_AUTO_TEST_CASE(of_a_level_is_met_to_the_tick)
{
  for (const std::size_t slots : {1U, 8U, 1024U}) {
    for (const auto tick : std::array<std::chrono::nanoseconds, 3>{1us, 1ms, 1h}) {
      wheel_in_virtual_time v(shape(tick, slots));
      const auto most = static_cast<std::uint64_t>((time_point::max() - v.start) / tick) - 2;
      std::size_t started = 0;
      std::size_t exact = 0;
      for (std::uint64_t reach = 1; reach < most; reach *= 2) {
        for (const std::uint64_t ticks : {reach - 1, reach, reach + 1}) {
          for (const duration off : {-1ns, 0ns, 1ns}) {
            // Due at the tick that follows, if the deadline lies between two.
            const time_point deadline = v.start + static_cast<duration::rep>(ticks) * tick + off;
            const time_point due = off > 0ns ? deadline - off + tick : deadline - off;
            ++started;
            v.wheel.async_wait(deadline,
                               [&, due](error_code ec) { exact += !ec && v.wheel.now() == due; });
          }
        }
      }
      while (v.time.advance_to_next()) {
      }
      BOOST_TEST(exact == started, exact << " of " << started << " waits on " << slots
                                         << " slots of " << tick.count() << " ns");
    }
  }
}

BOOST_AUTO_TEST_CASE(is_no_edge_to_waits_and_timers)
{
  wheel_in_virtual_time v;
  for (const time_point deadline : around(v.wheel.now())) {
    outcome plain;
    outcome of_timer;
    wheel_timer timer(v.wheel);
    timer.expires_at(deadline);
    BOOST_TEST((timer.expiry() == deadline));
    timer.async_wait(of_timer.recorder());
    v.wheel.async_wait(deadline, plain.recorder());
    v.time.advance(1ms);
    BOOST_TEST(ended_in_time(plain, deadline, v.wheel.now()));
    BOOST_TEST(ended_in_time(of_timer, deadline, v.wheel.now()));
    v.wheel.cancel_all();
    v.time.advance(0ns);
    BOOST_TEST(plain.calls + of_timer.calls == 2);
  }
}

BOOST_AUTO_TEST_CASE(is_no_edge_to_deadlines_of_operations)
{
  wheel_in_virtual_time v;
  support::manual_operation operation(v.context.get_executor());
  const auto check = [&](auto token_for, bool due) {
    support::result result;
    operation.async_run(token_for(result.recorder()));
    v.time.advance(1ms);
    BOOST_TEST(result.pending() != due);
    if (operation.running()) operation.complete({});
    v.time.advance(0ns);
    BOOST_TEST(result.calls == 1);
  };
  for (const time_point t : around(v.wheel.now())) {
    const bool due = t <= v.wheel.now() + 1ms;
    check([&](auto handler) { return cancel_at(v.wheel, t, handler); }, due);
    check([&](auto handler) { return timeout_at(v.wheel, t, handler); }, due);
  }
  for (const duration d : {duration::min(), duration{-1}, duration::zero(), duration{1},
                           duration::max() - 1ns, duration::max()}) {
    check([&](auto handler) { return cancel_after(v.wheel, d, handler); }, d <= 1ms);
    check([&](auto handler) { return timeout_after(v.wheel, d, handler); }, d <= 1ms);
  }
  BOOST_TEST(v.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(is_no_edge_to_what_repeats)
{
  wheel_in_virtual_time v;
  for (const auto missed : {missed_tick::burst, missed_tick::delay, missed_tick::skip}) {
    for (const time_point first : around(v.wheel.now())) {
      for (const duration period : {duration{1}, duration{24h}, duration::max()}) {
        wheel_interval interval(v.wheel, first, period, missed);
        std::array<support::tick_outcome, 3> ticks;
        for (auto& tick : ticks) {
          interval.async_tick(tick.recorder());
          v.time.advance(1ms);
          BOOST_TEST((tick.pending() || (!tick.error && tick.at <= v.wheel.now())));
        }
        BOOST_TEST(ticks[0].pending() == (first > v.wheel.now()));
        interval.cancel();
        v.time.advance(0ns);
      }
    }
  }
  int runs = 0;
  keyed_scheduler<int> scheduler(v.wheel);
  const auto run = [&runs] { ++runs; };
  scheduler.run_after(1, duration::min(), run);
  scheduler.run_after(2, duration::max(), run);
  scheduler.run_every(3, duration::max(), run);
  scheduler.run_every(4, 1ns, run, 2);
  v.time.advance(10ms);
  BOOST_TEST(runs == 3);
  BOOST_TEST(scheduler.size() == 2U);
}

BOOST_AUTO_TEST_CASE(is_no_edge_to_what_must_stay_alive)
{
  wheel_in_virtual_time v;
  for (const duration d : {duration{1}, duration::max() - 1ns, duration::max()}) {
    outcome expired;
    wheel_watchdog watchdog(v.wheel, d);
    watchdog.async_expired(expired.recorder());
    watchdog.touch();
    v.time.advance(2ms);
    BOOST_TEST(expired.pending() == (d > 2ms));
    watchdog.set_timeout(duration::max());
    watchdog.set_timeout(1ns);
    v.time.advance(2ms);
    BOOST_TEST(expired.succeeded());

    int events = 0;  // outlives the handlers that a heartbeat's end leaves
    for (const std::size_t missed : {std::size_t{1}, ~std::size_t{0}}) {
      heartbeat beat(v.wheel, {.interval = d, .max_missed = missed});
      events = 0;
      beat.async_next([&](error_code ec, heartbeat_event) { events += ec ? 0 : 1; });
      v.time.advance(2ms);
      BOOST_TEST(events == (d > 2ms ? 0 : 1));
    }
    v.time.advance(0ns);
  }
}

BOOST_AUTO_TEST_CASE(of_the_coarse_clocks_grain_lets_nothing_be_early)
{
  for (const auto tick : std::array<std::chrono::nanoseconds, 2>{100us, 1ms}) {
    auto options = support::with_tick(tick);
    options.clock = clock_source::coarse;
    context_with_wheel c(options);
    ::timespec grain{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &grain);
    const std::chrono::nanoseconds g{grain.tv_nsec};
    std::size_t ended = 0;
    std::size_t early = 0;
    constexpr std::size_t edges = 12;
    for (std::size_t i = 0; i < edges; ++i) {
      // The reading is oldest just before it moves, and newest just after.
      const auto reading = coarse_reading();
      while (coarse_reading() == reading) {
        for (const duration d : {duration{1}, duration{g - 1ns}, duration{g}, duration{g + 1ns}}) {
          if (c.wheel.pending() > 4000 * (i + 1)) continue;
          const time_point deadline = support::earliest(c.wheel, d);
          c.wheel.async_wait(d, [&, deadline](error_code ec) {
            ++ended;
            early += ec || c.wheel.now() < deadline;
          });
        }
      }
      c.context.poll();
    }
    support::run_to_end(c.context);
    BOOST_TEST(ended == c.wheel.stats().started);
    BOOST_TEST(ended >= edges);
    BOOST_TEST(early == 0U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
