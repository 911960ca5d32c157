// Parity of cancelling: what cancel, cancel_one, expires_at and expires_after return and do.
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::every_timer;
using support::outcome;

BOOST_AUTO_TEST_SUITE(cancelling)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cancel_counts_nothing_when_nothing_waits, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  BOOST_TEST(timer.cancel() == 0U);
  BOOST_TEST(timer.cancel_one() == 0U);
  BOOST_TEST(timer.expires_after(1h) == 0U);
  BOOST_TEST(timer.expires_at(steady_clock::now()) == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_aborts_every_wait_and_counts_them, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  std::array<outcome, 3> waits;
  for (auto& wait : waits) timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel() == 3U);
  for (const auto& wait : waits) BOOST_TEST(wait.pending());
  support::run_to_end(context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_counts_a_wait_only_once, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  outcome wait;
  timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel() == 1U);
  BOOST_TEST(timer.cancel() == 0U);
  BOOST_TEST(timer.cancel_one() == 0U);
  BOOST_TEST(timer.expires_after(1h) == 0U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_leaves_the_expiry_alone, Timer, every_timer)
{
  asio::io_context context;
  const auto deadline = steady_clock::now() + 1h;
  Timer timer(context, deadline);
  outcome wait;
  timer.async_wait(wait.recorder());
  timer.cancel();
  BOOST_TEST((timer.expiry() == deadline));
  timer.cancel_one();
  BOOST_TEST((timer.expiry() == deadline));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_leaves_other_timers_alone, Timer, every_timer)
{
  asio::io_context context;
  Timer cancelled(context, 3ms);
  Timer untouched(context, 3ms);
  outcome aborted;
  outcome expired;
  cancelled.async_wait(aborted.recorder());
  untouched.async_wait(expired.recorder());
  BOOST_TEST(cancelled.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(aborted.aborted());
  BOOST_TEST(expired.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_one_takes_the_oldest_wait, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  std::array<outcome, 3> waits;
  for (auto& wait : waits) timer.async_wait(wait.recorder());
  for (std::size_t i = 0; i < waits.size(); ++i) {
    BOOST_TEST(timer.cancel_one() == 1U);
    support::run_until(context, [&] { return !waits[i].pending(); });
    BOOST_TEST(waits[i].aborted());
    for (std::size_t later = i + 1; later < waits.size(); ++later) {
      BOOST_TEST(waits[later].pending());
    }
  }
  BOOST_TEST(timer.cancel_one() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_after_cancel_one_counts_the_rest, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  std::array<outcome, 3> waits;
  for (auto& wait : waits) timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel_one() == 1U);
  BOOST_TEST(timer.cancel() == 2U);
  support::run_to_end(context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(aborted_handlers_keep_their_order, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    timer.async_wait([&order, i](boost::system::error_code) { order.push_back(i); });
  }
  timer.cancel();
  support::run_to_end(context);
  const std::vector<int> expected{0, 1, 2, 3, 4};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(expires_at_aborts_counts_and_sets, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  std::array<outcome, 2> waits;
  for (auto& wait : waits) timer.async_wait(wait.recorder());
  const auto deadline = steady_clock::now() + 2h;
  BOOST_TEST(timer.expires_at(deadline) == 2U);
  BOOST_TEST((timer.expiry() == deadline));
  support::run_to_end(context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(expires_after_aborts_counts_and_sets, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  outcome wait;
  timer.async_wait(wait.recorder());
  const auto before = steady_clock::now();
  BOOST_TEST(timer.expires_after(2h) == 1U);
  BOOST_TEST((before + 2h <= timer.expiry()));
  BOOST_TEST((timer.expiry() <= steady_clock::now() + 2h));
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(setting_the_same_expiry_still_aborts, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  outcome wait;
  timer.async_wait(wait.recorder());
  BOOST_TEST(timer.expires_at(timer.expiry()) == 1U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_wait_may_follow_at_once, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  outcome first;
  outcome second;
  timer.async_wait(first.recorder());
  BOOST_TEST(timer.expires_after(2ms) == 1U);
  timer.async_wait(second.recorder());
  support::run_to_end(context);
  BOOST_TEST(first.aborted());
  BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_aborted_handler_may_wait_again, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  outcome second;
  timer.async_wait([&](boost::system::error_code ec) {
    BOOST_TEST(ec == asio::error::operation_aborted);
    BOOST_TEST(timer.expires_after(1ms) == 0U);
    timer.async_wait(second.recorder());
  });
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_it_counts_is_what_it_aborts, Timer, every_timer)
{
  // The deadline passes while nobody runs the context: Asio allows either result.
  asio::io_context context;
  Timer timer(context, 2ms);
  outcome wait;
  timer.async_wait(wait.recorder());
  timer.wait();
  const std::size_t cancelled = timer.cancel();
  support::run_to_end(context);
  BOOST_TEST((cancelled == 1 ? wait.aborted() : wait.succeeded()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(before_the_context_ran_a_past_deadline_is_cancellable, Timer,
                              every_timer)
{
  asio::io_context context;
  Timer timer(context, -1s);
  outcome wait;
  timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_periodic_timer_stops_when_cancelled, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  int rounds = 0;
  int aborted = 0;
  std::function<void(boost::system::error_code)> next = [&](boost::system::error_code ec) {
    if (ec) {
      ++aborted;
      return;
    }
    ++rounds;
    BOOST_TEST(timer.expires_after(rounds == 5 ? 1h : 1ms) == 0U);
    timer.async_wait(next);
    if (rounds == 5) BOOST_TEST(timer.cancel() == 1U);
  };
  timer.async_wait(next);
  support::run_to_end(context);
  BOOST_TEST(rounds == 5);
  BOOST_TEST(aborted == 1);
}

BOOST_AUTO_TEST_SUITE_END()
