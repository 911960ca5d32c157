// wheel_interval::async_tick as an Asio operation: what it does that no other wait does.
#include <array>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/tick_outcome.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::tick_outcome;

namespace {

/// An interval whose first tick is an hour away.
wheel_interval far_away(context_with_wheel& c)
{
  return wheel_interval(c.wheel, c.wheel.now() + 1h, 1h);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interval_tick)

BOOST_AUTO_TEST_CASE(is_never_completed_inline)
{
  context_with_wheel c;
  wheel_interval interval(c.wheel, c.wheel.now() - 1h, 1ms);
  tick_outcome tick;
  asio::post(c.context, [&] {
    interval.async_tick(asio::bind_executor(asio::system_executor(), tick.recorder()));
    interval.reset();
    interval.cancel();
    BOOST_TEST(tick.pending());
  });
  support::run_to_end(c.context);
  BOOST_TEST(tick.calls == 1);
}

BOOST_AUTO_TEST_CASE(ends_by_a_signal_before_and_after_the_wait_that_follows_a_reset)
{
  for (const bool waits_again : {false, true}) {
    context_with_wheel c;
    auto interval = far_away(c);
    asio::cancellation_signal signal;
    tick_outcome tick;
    interval.async_tick(asio::bind_cancellation_slot(signal.slot(), tick.recorder()));
    interval.reset();
    if (waits_again) support::run_until(c.context, [&] { return c.wheel.pending() == 1; });
    signal.emit(cancellation_type::partial);
    support::run_to_end(c.context);
    BOOST_TEST(tick.aborted());
  }
}

BOOST_AUTO_TEST_CASE(aborts_when_it_is_begun_after_its_interval)
{
  context_with_wheel c;
  auto interval = std::make_unique<wheel_interval>(far_away(c));
  auto begin = interval->async_tick(asio::deferred);
  interval.reset();
  tick_outcome tick;
  std::move(begin)(tick.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(tick.aborted());
}

BOOST_AUTO_TEST_CASE(of_several_that_wait_for_one_tick_all_complete_with_it)
{
  context_with_wheel c;
  const auto first = c.wheel.now() + 2ms;
  wheel_interval interval(c.wheel, first, 1h);
  std::array<tick_outcome, 3> ticks;
  for (auto& tick : ticks) interval.async_tick(tick.recorder());
  support::run_to_end(c.context);
  for (const auto& tick : ticks) {
    BOOST_TEST(tick.succeeded());
    BOOST_TEST((tick.at == first));
  }
}

BOOST_AUTO_TEST_CASE(of_several_while_several_ticks_are_due_each_takes_one)
{
  context_with_wheel c;
  const auto first = c.wheel.now() - 1h;
  wheel_interval interval(c.wheel, first, 1min);
  std::array<tick_outcome, 3> ticks;
  for (auto& tick : ticks) interval.async_tick(tick.recorder());
  support::run_to_end(c.context);
  for (std::size_t i = 0; i < ticks.size(); ++i)
    BOOST_TEST((ticks[i].at == first + std::chrono::minutes{i}));
}

BOOST_AUTO_TEST_CASE(begun_by_many_threads_at_once_completes_for_each)
{
  auto options = support::with_tick(50us);
  options.shards = 4;
  context_with_wheel c(options);
  wheel_interval interval(c.wheel, 100us);
  std::atomic<int> taken = 0;
  {
    support::running_threads loop(c.context, 2);
    support::in_threads(3, [&](int) {
      for (int i = 0; i < 50; ++i) {
        interval.async_tick(asio::use_future).get();
        ++taken;
      }
    });
  }
  BOOST_TEST(taken == 150);
}

BOOST_AUTO_TEST_SUITE_END()
