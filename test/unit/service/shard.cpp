// Cancels that a shard puts off: nobody can tell, but for the time it takes.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

namespace {

/// More than a shard puts off at once.
constexpr std::size_t many = 100;

struct started_timers : context_with_wheel {
  started_timers()
  {
    for (std::size_t i = 0; i < many; ++i) {
      timers.emplace_back(wheel, 1h);
      timers.back().async_wait([this, i](error_code ec) {
        BOOST_TEST((ec == asio::error::operation_aborted));
        ended.push_back(i);
      });
    }
  }

  std::deque<wheel_timer> timers;
  std::vector<std::size_t> ended;
};

std::vector<std::size_t> in_order()
{
  std::vector<std::size_t> all(many);
  for (std::size_t i = 0; i < many; ++i) all[i] = i;
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shard)

BOOST_AUTO_TEST_CASE(cancels_complete_in_their_order_however_many)
{
  started_timers t;
  for (auto& timer : t.timers) BOOST_TEST(timer.cancel() == 1U);
  BOOST_TEST(t.ended.empty());
  support::run_to_end(t.context);
  BOOST_TEST(t.ended == in_order());
}

BOOST_AUTO_TEST_CASE(a_cancel_that_cannot_be_put_off_comes_behind_those_that_were)
{
  started_timers t;
  for (std::size_t i = 0; i + 1 < many; ++i) t.timers[i].cancel();
  t.timers.back().cancel_one();
  support::run_to_end(t.context);
  BOOST_TEST(t.ended == in_order());
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_counts_no_more)
{
  started_timers t;
  t.timers.front().cancel();
  BOOST_TEST(t.wheel.pending() == many - 1);
  BOOST_TEST(t.wheel.stats().cancelled == 1U);
  BOOST_TEST(t.timers.front().cancel() == 0U);
  BOOST_TEST(t.timers.front().cancel_one() == 0U);
  BOOST_TEST(t.wheel.cancel_all() == many - 1);
  support::run_to_end(t.context);
  BOOST_TEST(t.ended.size() == many);
}

BOOST_AUTO_TEST_CASE(timers_may_go_right_after_their_cancel)
{
  started_timers t;
  for (auto& timer : t.timers) timer.cancel();
  t.timers.clear();
  support::run_to_end(t.context);
  BOOST_TEST(t.ended == in_order());
}

BOOST_AUTO_TEST_CASE(a_new_wait_on_the_timer_is_another_wait)
{
  context_with_wheel c;
  wheel_timer timer(c.wheel, 1h);
  outcome first, second;
  timer.async_wait(first.recorder());
  BOOST_TEST(timer.expires_after(1ms) == 1U);
  timer.async_wait(second.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(first.aborted());
  BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE(emitting_to_a_cancelled_wait_changes_nothing)
{
  context_with_wheel c;
  asio::cancellation_signal signal;
  outcome wait;
  wheel_timer timer(c.wheel, 1h);
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  BOOST_TEST(timer.cancel() == 1U);
  signal.emit(asio::cancellation_type::terminal);
  BOOST_TEST(c.wheel.stats().cancelled == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(waits_of_a_context_that_goes_are_destroyed_cancelled_or_not)
{
  std::vector<std::size_t> ended;
  {
    started_timers t;
    for (std::size_t i = 0; i < 3; ++i) t.timers[i].cancel();
    t.timers.clear();
    ended = t.ended;
  }
  BOOST_TEST(ended.empty());
}

BOOST_AUTO_TEST_CASE(an_overdue_wait_is_cancelled_at_once)
{
  context_with_wheel c;
  outcome wait;
  wheel_timer timer(c.wheel, -1h);
  timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_SUITE_END()
