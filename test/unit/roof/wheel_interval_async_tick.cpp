// wheel_interval::async_tick as an Asio operation: executor, memory, cancellation, end of life.
#include <array>
#include <atomic>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "support/ledger.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/tick_outcome.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
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

BOOST_AUTO_TEST_CASE(runs_its_handler_on_the_intervals_strand_however_it_ends)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  wheel_interval interval(strand, duration{1h});
  int on_strand = 0;
  const auto handler = [&](error_code, time_point) {
    on_strand += strand.running_in_this_thread() ? 1 : 0;
  };
  interval.async_tick(handler);
  support::run_to_end(c.context);
  interval.async_tick(handler);
  interval.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(on_strand == 2);
}

BOOST_AUTO_TEST_CASE(prefers_the_handlers_own_executor)
{
  context_with_wheel c;
  const auto of_interval = asio::make_strand(c.context);
  const auto of_handler = asio::make_strand(c.context);
  wheel_interval interval(of_interval, 1ms);
  bool there = false;
  interval.async_tick(asio::bind_executor(
    of_handler, [&](error_code, time_point) { there = of_handler.running_in_this_thread(); }));
  support::run_to_end(c.context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_CASE(is_one_allocation_which_is_free_before_the_handler)
{
  for (const bool cancel : {false, true}) {
    context_with_wheel c;
    support::ledger books;
    std::optional<std::size_t> held;
    wheel_interval interval(c.wheel, c.wheel.now() + (cancel ? 1h : 0h), 1h);
    interval.async_tick(
      asio::bind_allocator(support::booking_allocator<void>(books),
                           [&](error_code, time_point) { held = books.outstanding; }));
    BOOST_TEST(books.outstanding == 1U);
    if (cancel) interval.cancel();
    support::run_to_end(c.context);
    BOOST_TEST(held.value() == 0U);
    BOOST_TEST(books.taken == 1U);
  }
}

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

BOOST_AUTO_TEST_CASE(ends_by_each_type_of_cancellation)
{
  for (const auto type : {cancellation_type::terminal, cancellation_type::partial,
                          cancellation_type::total, cancellation_type::all}) {
    context_with_wheel c;
    auto interval = far_away(c);
    asio::cancellation_signal signal;
    tick_outcome tick;
    tick_outcome other;
    interval.async_tick(asio::bind_cancellation_slot(signal.slot(), tick.recorder()));
    interval.async_tick(other.recorder());
    signal.emit(cancellation_type::none);
    BOOST_TEST(c.wheel.pending() == 2U);
    signal.emit(type);
    BOOST_TEST(c.wheel.pending() == 1U);
    BOOST_TEST(tick.pending());
    support::run_until(c.context, [&] { return !tick.pending(); });
    BOOST_TEST(tick.aborted());
    BOOST_TEST(other.pending());
    interval.cancel();
    support::run_to_end(c.context);
    BOOST_TEST(other.aborted());
  }
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

BOOST_AUTO_TEST_CASE(ends_when_the_wheel_cancels_all)
{
  context_with_wheel c;
  auto interval = far_away(c);
  tick_outcome tick;
  interval.async_tick(tick.recorder());
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(tick.aborted());
}

BOOST_AUTO_TEST_CASE(ends_when_another_thread_cancels)
{
  for (int way = 0; way < 4; ++way) {
    context_with_wheel c;
    auto interval = std::make_unique<wheel_interval>(far_away(c));
    asio::cancellation_signal signal;
    tick_outcome tick;
    interval->async_tick(asio::bind_cancellation_slot(signal.slot(), tick.recorder()));
    std::thread other([&] {
      switch (way) {
        case 0: interval->cancel(); break;
        case 1: c.wheel.cancel_all(); break;
        case 2: asio::post(c.context, [&] { signal.emit(cancellation_type::total); }); break;
        default: interval.reset();
      }
    });
    support::run_to_end(c.context);
    other.join();
    BOOST_TEST(tick.aborted());
  }
}

BOOST_AUTO_TEST_CASE(aborts_when_its_interval_is_destroyed)
{
  context_with_wheel c;
  std::array<tick_outcome, 3> ticks;
  {
    auto interval = far_away(c);
    for (auto& tick : ticks) interval.async_tick(tick.recorder());
  }
  BOOST_TEST(c.wheel.pending() == 0U);
  for (const auto& tick : ticks) BOOST_TEST(tick.pending());
  support::run_to_end(c.context);
  for (const auto& tick : ticks) BOOST_TEST(tick.aborted());
}

BOOST_AUTO_TEST_CASE(aborts_when_it_is_begun_after_its_interval)
{
  context_with_wheel c;
  std::optional<wheel_interval> interval(far_away(c));
  auto begin = interval->async_tick(asio::deferred);
  interval.reset();
  tick_outcome tick;
  std::move(begin)(tick.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(tick.aborted());
}

BOOST_AUTO_TEST_CASE(goes_uncalled_with_the_context)
{
  const auto alive = std::make_shared<int>(0);
  asio::cancellation_signal signal;
  std::optional<wheel_interval> interval;
  {
    context_with_wheel c;
    interval.emplace(far_away(c));
    interval->async_tick([alive](error_code, time_point) { ++*alive; });
    interval->async_tick(
      asio::bind_cancellation_slot(signal.slot(), [alive](error_code, time_point) { ++*alive; }));
  }
  signal.emit(cancellation_type::terminal);
  BOOST_TEST(alive.use_count() == 1);
  BOOST_TEST(*alive == 0);
}

BOOST_AUTO_TEST_CASE(passes_on_that_the_wheel_is_full)
{
  context_with_wheel c(support::with_limit(1));
  auto interval = far_away(c);
  tick_outcome kept;
  tick_outcome refused;
  interval.async_tick(kept.recorder());
  interval.async_tick(refused.recorder());
  c.context.poll();
  BOOST_TEST(kept.pending());
  BOOST_TEST(refused.error == wheel_errc::too_many_pending);
  interval.cancel();
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(is_a_future_when_asked)
{
  context_with_wheel c;
  const auto first = c.wheel.now() + 1ms;
  wheel_interval interval(c.wheel, first, 1h);
  auto tick = interval.async_tick(asio::use_future);
  support::run_to_end(c.context);
  BOOST_TEST((tick.get() == first));
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
