// What wheel_timer does and Asio's timer does not: a chosen wheel, sharing by threads, a longer
// life.
#include <array>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>
#include <thread>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::outcome;

BOOST_AUTO_TEST_SUITE(timer)

BOOST_AUTO_TEST_CASE(sits_on_the_wheel_it_is_given)
{
  context_with_wheel c;
  wheel_timer timer(c.wheel);
  BOOST_TEST((timer.get_executor() == c.wheel.get_executor()));
  BOOST_TEST((timer.expiry() == wheel_timer::time_point{}));
  outcome wait;
  timer.expires_after(1h);
  timer.async_wait(wait.recorder());
  BOOST_TEST(c.wheel.pending() == 1U);
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  BOOST_TEST(timer.cancel() == 0U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(takes_an_expiry_with_the_wheel)
{
  context_with_wheel c;
  const auto before = c.wheel.now();
  const wheel_timer after(c.wheel, 1h);
  const wheel_timer at(c.wheel, before);
  BOOST_TEST((after.expiry() >= before + 1h));
  BOOST_TEST((at.expiry() == before));
}

BOOST_AUTO_TEST_CASE(makes_a_wheel_where_there_is_none)
{
  asio::io_context context;
  const wheel_timer timer(context);
  BOOST_TEST(asio::has_service<wheel_timer_service>(context));
}

BOOST_AUTO_TEST_CASE(keeps_several_waits_in_order_through_moves_and_cancels)
{
  context_with_wheel c;
  std::vector<int> order;
  wheel_timer first(c.wheel);
  first.expires_after(3ms);
  for (int i = 0; i < 6; ++i) {
    first.async_wait([&order, i](error_code ec) { order.push_back(ec ? -i : i); });
  }
  BOOST_TEST(first.cancel_one() == 1U);
  wheel_timer second(std::move(first));
  BOOST_TEST(second.cancel_one() == 1U);
  for (int i = 6; i < 8; ++i) {
    second.async_wait([&order, i](error_code ec) { order.push_back(ec ? -i : i); });
  }
  support::run_to_end(c.context);
  const std::vector<int> expected{0, -1, 2, 3, 4, 5, 6, 7};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(cancels_what_was_started_after_its_other_waits_were_due)
{
  context_with_wheel c;
  virtual_time time(c.wheel);
  const auto deadline = c.wheel.now() + 1s;
  wheel_timer timer(c.wheel, deadline);
  outcome late;
  c.wheel.async_wait(deadline, [&](error_code) { timer.async_wait(late.recorder()); });
  // As many as fill a batch ahead of the next.
  for (int i = 1; i < 64; ++i) c.wheel.async_wait(deadline, [](error_code) {});
  std::size_t cancelled = 0;
  timer.async_wait([&](error_code) { cancelled = timer.cancel(); });
  time.advance(2s);
  BOOST_TEST(cancelled == 1U);
  BOOST_TEST(late.aborted());
}

BOOST_AUTO_TEST_CASE(counts_waits_that_a_signal_ended_no_more)
{
  context_with_wheel c;
  wheel_timer timer(c.wheel, 1h);
  std::array<asio::cancellation_signal, 5> signals;
  std::array<outcome, 5> waits;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    timer.async_wait(asio::bind_cancellation_slot(signals[i].slot(), waits[i].recorder()));
  }
  // The first wait, the last and one in the middle of the timer's list.
  for (const std::size_t i : {0U, 4U, 2U}) signals[i].emit(cancellation_type::terminal);
  BOOST_TEST(timer.cancel_one() == 1U);
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(obeys_a_signal_after_it_was_moved)
{
  context_with_wheel c;
  asio::cancellation_signal signal;
  outcome wait;
  std::optional<wheel_timer> from(std::in_place, c.context, 1h);
  from->async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  wheel_timer to(std::move(*from));
  from.reset();
  signal.emit(cancellation_type::terminal);
  BOOST_TEST(to.cancel() == 0U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(timer_wait)

BOOST_AUTO_TEST_CASE(ends_when_another_thread_cancels_it_alone_or_sets_an_expiry)
{
  for (const bool by_expiry : {false, true}) {
    context_with_wheel c;
    wheel_timer timer(c.context, 1h);
    outcome wait;
    timer.async_wait(wait.recorder());
    std::thread other([&] { by_expiry ? timer.expires_after(1s) : timer.cancel_one(); });
    support::run_to_end(c.context);
    other.join();
    BOOST_TEST(wait.aborted());
  }
}

BOOST_AUTO_TEST_CASE(started_by_another_thread_wakes_the_loop)
{
  context_with_wheel c;
  wheel_timer later(c.context, 1h);
  wheel_timer soon(c.context);
  outcome of_later;
  outcome of_soon;
  later.async_wait(of_later.recorder());
  std::thread other([&] {
    soon.expires_after(1ms);
    soon.async_wait([&](error_code ec) {
      of_soon.recorder()(ec);
      later.cancel();
    });
  });
  support::run_to_end(c.context);
  other.join();
  BOOST_TEST(of_soon.succeeded());
  BOOST_TEST(of_later.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(timer_shared_by_threads)

BOOST_AUTO_TEST_CASE(moves_between_the_shards_of_the_threads_that_use_it)
{
  auto options = support::with_tick(1ms);
  options.shards = 8;
  context_with_wheel c(options);
  wheel_timer timer(c.wheel);
  for (int round = 0; round < 20; ++round) {
    outcome wait;
    std::thread([&] {
      timer.expires_after(1h);
      timer.async_wait(wait.recorder());
    }).join();
    BOOST_TEST(timer.cancel() == 1U);
    support::run_to_end(c.context);
    BOOST_TEST(wait.aborted());
  }
}

BOOST_AUTO_TEST_CASE(holds_the_waits_of_all_of_them)
{
  auto options = support::with_tick(1ms);
  options.shards = 8;
  context_with_wheel c(options);
  wheel_timer timer(c.context, 1h);
  std::array<outcome, 40> waits;
  support::in_threads(4, [&](int t) {
    for (std::size_t i = static_cast<std::size_t>(t); i < waits.size(); i += 4) {
      timer.async_wait(waits[i].recorder());
    }
  });
  BOOST_TEST(timer.cancel_one() == 1U);
  BOOST_TEST(timer.cancel() == waits.size() - 1);
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(tells_an_expiry_that_somebody_set)
{
  context_with_wheel c;
  const auto base = c.wheel.now();
  wheel_timer timer(c.context, base);
  std::atomic<int> strange = 0;
  support::in_threads(4, [&](int t) {
    for (int i = 0; i < 2000; ++i) {
      timer.expires_at(base + t * 1h);
      const auto seen = timer.expiry() - base;
      if (seen % 1h != 0h || seen < 0h || seen > 3h) ++strange;
    }
  });
  BOOST_TEST(strange.load() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
