// Parity of time: blocking waits, extreme time values, and the order of several deadlines.
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::every_timer;
using support::outcome;

BOOST_AUTO_TEST_SUITE(blocking_wait)

BOOST_AUTO_TEST_CASE_TEMPLATE(returns_not_before_the_expiry, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 3ms);
  timer.wait();
  BOOST_TEST((steady_clock::now() >= timer.expiry()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(clears_the_error_code, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 3ms);
  boost::system::error_code ec = asio::error::fault;
  timer.wait(ec);
  BOOST_TEST(!ec);
  BOOST_TEST((steady_clock::now() >= timer.expiry()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_past_expiry_returns_at_once, Timer, every_timer)
{
  asio::io_context context;
  Timer never_set(context);
  Timer past(context, -1h);
  Timer oldest(context, Timer::time_point::min());
  const auto before = steady_clock::now();
  never_set.wait();
  past.wait();
  oldest.wait();
  BOOST_TEST((steady_clock::now() - before < 10s));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(needs_no_running_context_and_runs_no_handler, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 2ms);
  outcome wait;
  timer.async_wait(wait.recorder());
  timer.wait();
  BOOST_TEST(wait.pending());
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(time_values)

BOOST_AUTO_TEST_CASE_TEMPLATE(without_an_expiry_a_wait_completes_at_once, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context);
  outcome wait;
  timer.async_wait(wait.recorder());
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(past_deadlines_complete_at_once, Timer, every_timer)
{
  asio::io_context context;
  const std::array deadlines{Timer::time_point::min(), steady_clock::now() - 1h,
                             steady_clock::now()};
  for (const auto deadline : deadlines) {
    Timer timer(context, deadline);
    BOOST_TEST((timer.expiry() == deadline));
    outcome wait;
    timer.async_wait(wait.recorder());
    support::run_to_end(context);
    BOOST_TEST(wait.succeeded());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(past_delays_complete_at_once, Timer, every_timer)
{
  asio::io_context context;
  const std::array delays{Timer::duration::min(), typename Timer::duration{-1h},
                          Timer::duration::zero()};
  for (const auto delay : delays) {
    Timer timer(context, delay);
    outcome wait;
    timer.async_wait(wait.recorder());
    support::run_to_end(context);
    BOOST_TEST(wait.succeeded());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_latest_deadline_waits_until_cancelled, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, Timer::time_point::max());
  BOOST_TEST((timer.expiry() == Timer::time_point::max()));
  outcome wait;
  timer.async_wait(wait.recorder());
  context.run_for(3ms);
  BOOST_TEST(wait.pending());
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_longest_delay_saturates, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, Timer::duration::max());
  BOOST_TEST((timer.expiry() == Timer::time_point::max()));
  outcome wait;
  timer.async_wait(wait.recorder());
  context.run_for(3ms);
  BOOST_TEST(wait.pending());
  BOOST_TEST(timer.expires_after(Timer::duration::max()) == 1U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_of_a_century_does_not_hinder_a_short_one, Timer, every_timer)
{
  asio::io_context context;
  Timer century(context, 24h * 36525);
  Timer moment(context, 2ms);
  outcome later;
  outcome soon;
  century.async_wait(later.recorder());
  moment.async_wait(soon.recorder());
  support::run_until(context, [&] { return !soon.pending(); });
  BOOST_TEST(soon.succeeded());
  BOOST_TEST(century.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(later.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_wait_ends_before_its_deadline, Timer, every_timer)
{
  asio::io_context context;
  std::vector<Timer> timers;
  std::size_t early = 0;
  for (int i = 0; i < 50; ++i) timers.emplace_back(context, i * 170us);
  for (auto& timer : timers) {
    timer.async_wait([&](boost::system::error_code ec) {
      if (ec || steady_clock::now() < timer.expiry()) ++early;
    });
  }
  support::run_to_end(context);
  BOOST_TEST(early == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ordering)

BOOST_AUTO_TEST_CASE_TEMPLATE(timers_complete_by_deadline, Timer, every_timer)
{
  asio::io_context context;
  Timer last(context);
  Timer first(context);
  Timer middle(context);
  const auto start = steady_clock::now();
  last.expires_at(start + 9ms);
  first.expires_at(start + 3ms);
  middle.expires_at(start + 6ms);
  std::vector<int> order;
  last.async_wait([&](auto) { order.push_back(3); });
  first.async_wait([&](auto) { order.push_back(1); });
  middle.async_wait([&](auto) { order.push_back(2); });
  support::run_to_end(context);
  const std::vector<int> expected{1, 2, 3};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(timers_complete_by_deadline_even_if_all_are_past, Timer, every_timer)
{
  asio::io_context context;
  Timer late(context);
  Timer early(context);
  const auto start = steady_clock::now();
  late.expires_at(start + 8ms);
  early.expires_at(start + 4ms);
  std::vector<int> order;
  late.async_wait([&](auto) { order.push_back(2); });
  early.async_wait([&](auto) { order.push_back(1); });
  late.wait();
  support::run_to_end(context);
  const std::vector<int> expected{1, 2};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waits_of_one_timer_complete_as_started, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 3ms);
  std::vector<int> order;
  for (int i = 0; i < 6; ++i) {
    timer.async_wait([&order, i](boost::system::error_code ec) {
      BOOST_TEST(!ec);
      order.push_back(i);
    });
  }
  support::run_to_end(context);
  const std::vector<int> expected{0, 1, 2, 3, 4, 5};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
