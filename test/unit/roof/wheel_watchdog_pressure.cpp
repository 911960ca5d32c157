// wheel_watchdog with an idle_window: how its timeout follows the wheel's pressure.
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"

using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;
using support::wheel_in_virtual_time;

namespace {

constexpr idle_window window{10s, 60s};

/// A watchdog in virtual time that is waited for.
struct watched : wheel_in_virtual_time {
  wheel_watchdog dog{wheel, window};
  outcome expiry;

  watched() { dog.async_expired(expiry.recorder()); }
};

template <class Function>
bool refuses(Function f, const std::string& value, const std::string& range)
{
  try {
    f();
  } catch (const std::invalid_argument& e) {
    const std::string what = e.what();
    return what.find(value) != what.npos && what.find(range) != what.npos;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(watchdog_under_pressure)

BOOST_AUTO_TEST_CASE(expires_after_what_the_pressure_leaves_of_its_window)
{
  for (const auto& [p, timeout] : {std::pair{0.0, 60s}, {0.2, 50s}, {0.5, 35s}, {1.0, 10s}}) {
    wheel_in_virtual_time c;
    c.wheel.set_pressure(p);
    BOOST_TEST(c.wheel.pressure() == p);
    wheel_watchdog dog(c.wheel, window);
    BOOST_TEST((dog.timeout() == timeout));
    outcome o;
    dog.async_expired(o.recorder());
    c.time.advance(timeout - 1ms);
    BOOST_TEST(o.pending());
    c.time.advance(1ms);
    BOOST_TEST(o.succeeded());
  }
}

BOOST_AUTO_TEST_CASE(follows_rising_pressure_while_it_is_pending)
{
  watched c;
  c.time.advance(20s);
  c.wheel.set_pressure(0.5);
  c.time.advance(14s);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(1s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(expires_at_once_if_it_was_idle_for_too_long_by_the_new_rule)
{
  watched c;
  c.time.advance(20s);
  c.wheel.set_pressure(1);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(2ms);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(is_put_off_by_falling_pressure_while_it_is_pending)
{
  watched c;
  c.wheel.set_pressure(1);
  c.time.advance(9s);
  c.wheel.set_pressure(0.2);
  c.time.advance(40s);
  BOOST_TEST(c.expiry.pending());
  c.wheel.set_pressure(0);
  c.time.advance(10s);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(1s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(counts_from_the_last_touch)
{
  watched c;
  c.wheel.set_pressure(1);
  for (int i = 0; i != 10; ++i) {
    c.time.advance(9s);
    c.dog.touch();
  }
  BOOST_TEST(c.expiry.pending());
  c.time.advance(10s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(leaves_a_fixed_timeout_alone)
{
  wheel_in_virtual_time c;
  wheel_watchdog fixed(c.wheel, 60s);
  outcome o;
  fixed.async_expired(o.recorder());
  c.wheel.set_pressure(1);
  c.time.advance(59s);
  BOOST_TEST(o.pending());
  BOOST_TEST((fixed.timeout() == 60s));
}

BOOST_AUTO_TEST_CASE(gives_way_to_a_timeout_that_is_set)
{
  watched c;
  c.wheel.set_pressure(0.5);
  c.dog.set_timeout(5s);
  BOOST_TEST((c.dog.timeout() == 5s));
  c.wheel.set_pressure(1);
  c.time.advance(4s);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(1s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(may_be_without_end_and_get_one)
{
  wheel_in_virtual_time c;
  wheel_watchdog dog(c.wheel, idle_window{1ns, duration::max()});
  outcome o;
  dog.async_expired(o.recorder());
  c.time.advance(24h);
  BOOST_TEST(o.pending());
  c.wheel.set_pressure(1);
  c.time.advance(2ms);
  BOOST_TEST(o.succeeded());
}

BOOST_AUTO_TEST_CASE(takes_its_window_with_it_when_it_is_moved)
{
  watched c;
  wheel_watchdog moved(std::move(c.dog));
  wheel_watchdog assigned(c.wheel, idle_window{1s, 2s});
  assigned = std::move(moved);
  c.time.advance(20s);
  c.wheel.set_pressure(1);
  c.time.advance(2ms);
  BOOST_TEST(c.expiry.succeeded());
  BOOST_TEST((moved.timeout() == 60s));
}

BOOST_AUTO_TEST_CASE(refuses_what_makes_no_sense)
{
  context_with_wheel c;
  const auto make = [&](idle_window w) { return [&c, w] { wheel_watchdog dog(c.wheel, w); }; };
  BOOST_TEST(refuses(make({0s, 1s}), "0ns", "more than 0ns"));
  BOOST_TEST(refuses(make({2s, 1s}), "1000000000ns", "at least"));
  for (const double p : {-0.1, 1.5, std::numeric_limits<double>::infinity()})
    BOOST_TEST(refuses([&] { c.wheel.set_pressure(p); }, "", "from 0 to 1"));
  BOOST_TEST(refuses([&] { c.wheel.set_pressure(1.5); }, "1.5", "from 0 to 1"));
  BOOST_TEST(refuses([&] { c.wheel.set_pressure(std::numeric_limits<double>::quiet_NaN()); }, "nan",
                     "from 0 to 1"));
  BOOST_TEST(c.wheel.pressure() == 0);
}

BOOST_AUTO_TEST_CASE(is_told_in_pieces_with_other_work_in_between)
{
  context_with_wheel c;
  std::vector<wheel_watchdog> dogs;
  constexpr std::size_t many = 10'000;
  for (std::size_t i = 0; i != many; ++i) {
    dogs.emplace_back(c.wheel, idle_window{1h, 2h});
    dogs.back().async_expired([](error_code) {});
  }
  c.context.poll();
  c.wheel.set_pressure(1);
  // Handlers run one at a time, and none of them goes through all of the watchdogs.
  std::size_t turns = 0;
  while (c.context.poll_one() != 0) ++turns;
  BOOST_TEST(turns >= many / 100);
  for (auto& dog : dogs) BOOST_TEST_REQUIRE((dog.timeout() == 1h));
}

BOOST_AUTO_TEST_CASE(costs_the_context_nothing_if_nobody_follows)
{
  context_with_wheel c;
  wheel_watchdog fixed(c.wheel, 1h);
  c.wheel.set_pressure(0.5);
  BOOST_TEST(c.context.poll() == 0U);
}

BOOST_AUTO_TEST_CASE(outlives_its_context)
{
  auto c = std::make_unique<context_with_wheel>();
  wheel_watchdog dog(c->wheel, window);
  dog.async_expired([](error_code) {});
  c->wheel.set_pressure(0.5);
  c.reset();
  dog.touch();
  BOOST_TEST(dog.cancel() == 0U);
}

BOOST_AUTO_TEST_CASE(comes_and_goes_on_other_threads_while_the_pressure_changes)
{
  context_with_wheel c;
  auto work = boost::asio::make_work_guard(c.context);
  std::atomic<int> strange{0};
  std::atomic<bool> stop{false};
  std::thread runner([&] { c.context.run(); });
  std::thread presser([&] {
    std::mt19937 random(1);
    while (!stop) c.wheel.set_pressure(static_cast<double>(random() % 101) / 100);
  });
  const auto live = [&] {
    std::vector<wheel_watchdog> dogs;
    for (int i = 0; i != 2000; ++i) {
      const auto born = c.wheel.now();
      dogs.emplace_back(c.wheel, idle_window{1ms, 5ms});
      dogs.back().async_expired([&, born](error_code ec) {
        if (!ec && c.wheel.now() < born + 1ms) ++strange;
      });
      dogs.back().touch();
      if (dogs.size() == 50) dogs.erase(dogs.begin(), dogs.begin() + 25);
    }
  };
  std::thread other(live);
  live();
  other.join();
  stop = true;
  presser.join();
  work.reset();
  runner.join();
  BOOST_TEST(strange == 0);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
