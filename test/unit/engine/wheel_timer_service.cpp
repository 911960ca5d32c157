// The service's own members: pending, cancel_all, now, get_executor, the limit and its life.
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

BOOST_AUTO_TEST_SUITE(service)

BOOST_AUTO_TEST_CASE(is_an_execution_context_service_on_the_steady_clock)
{
  using s = wheel_timer_service;
  BOOST_TEST((std::is_base_of_v<asio::execution_context::service, s>));
  BOOST_TEST((std::is_same_v<s::clock_type, std::chrono::steady_clock>));
  BOOST_TEST((std::is_same_v<s::duration, std::chrono::steady_clock::duration>));
  BOOST_TEST((std::is_same_v<s::time_point, std::chrono::steady_clock::time_point>));
}

BOOST_AUTO_TEST_CASE(now_is_the_steady_clock_and_never_goes_back)
{
  const context_with_wheel c;
  auto last = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    const auto now = c.wheel.now();
    BOOST_REQUIRE((now >= last));
    last = now;
  }
  BOOST_TEST((last <= std::chrono::steady_clock::now()));
}

BOOST_AUTO_TEST_CASE(its_executor_is_the_contexts_and_counts_no_work)
{
  context_with_wheel c;
  const wheel_timer_service::executor_type ex = c.wheel.get_executor();
  BOOST_TEST((ex == c.context.get_executor()));
  BOOST_TEST((&ex.context() == &c.context));
  BOOST_TEST(c.context.run() == 0U);
}

BOOST_AUTO_TEST_CASE(takes_any_unit_of_time)
{
  context_with_wheel c;
  std::array<outcome, 4> waits;
  c.wheel.async_wait(1ns, waits[0].recorder());
  c.wheel.async_wait(1us, waits[1].recorder());
  c.wheel.async_wait(1ms, waits[2].recorder());
  c.wheel.async_wait(std::chrono::seconds{0}, waits[3].recorder());
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(pending_follows_starts_expiries_and_cancels)
{
  context_with_wheel c;
  outcome soon;
  outcome later;
  BOOST_TEST(c.wheel.pending() == 0U);
  c.wheel.async_wait(1ms, soon.recorder());
  BOOST_TEST(c.wheel.pending() == 1U);
  c.wheel.async_wait(1h, later.recorder());
  BOOST_TEST(c.wheel.pending() == 2U);
  support::run_until(c.context, [&] { return !soon.pending(); });
  BOOST_TEST(c.wheel.pending() == 1U);
  c.wheel.cancel_all();
  BOOST_TEST(c.wheel.pending() == 0U);
  support::run_to_end(c.context);
  BOOST_TEST(later.aborted());
}

BOOST_AUTO_TEST_CASE(cancel_all_reaches_the_waits_of_every_thread)
{
  auto options = support::with_tick(1ms);
  options.shards = 8;
  context_with_wheel c(options);
  std::vector<outcome> waits(1000);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < waits.size(); i += 4) c.wheel.async_wait(1h, waits[i].recorder());
    });
  }
  for (auto& thread : threads) thread.join();
  BOOST_TEST(c.wheel.cancel_all() == waits.size());
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(cancel_all_lets_handlers_start_new_waits)
{
  context_with_wheel c;
  outcome next;
  c.wheel.async_wait(1h, [&](error_code ec) {
    BOOST_TEST(ec == asio::error::operation_aborted);
    c.wheel.async_wait(1ms, next.recorder());
  });
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(next.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(limit)

BOOST_AUTO_TEST_CASE(refuses_what_is_beyond_it)
{
  context_with_wheel c(support::with_limit(2));
  std::array<outcome, 4> waits;
  for (auto& wait : waits) c.wheel.async_wait(1ms, wait.recorder());
  BOOST_TEST(c.wheel.pending() == 2U);
  support::run_to_end(c.context);
  BOOST_TEST(waits[0].succeeded());
  BOOST_TEST(waits[1].succeeded());
  BOOST_TEST(waits[2].calls == 1);
  BOOST_TEST(waits[2].error == wheel_errc::too_many_pending);
  BOOST_TEST(waits[3].error == wheel_errc::too_many_pending);
}

BOOST_AUTO_TEST_CASE(counts_the_waits_of_timers_too)
{
  context_with_wheel c(support::with_limit(2));
  std::array<outcome, 3> waits;
  wheel_timer timer(c.context, 1h);
  for (auto& wait : waits) timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel() == 2U);
  support::run_to_end(c.context);
  BOOST_TEST(waits[0].aborted());
  BOOST_TEST(waits[1].aborted());
  BOOST_TEST(waits[2].error == wheel_errc::too_many_pending);
}

BOOST_AUTO_TEST_CASE(holds_across_the_shards_of_several_threads)
{
  auto options = support::with_limit(100);
  options.shards = 8;
  context_with_wheel c(options);
  std::vector<outcome> waits(400);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < waits.size(); i += 4) c.wheel.async_wait(1h, waits[i].recorder());
    });
  }
  for (auto& thread : threads) thread.join();
  BOOST_TEST(c.wheel.pending() == 100U);
  BOOST_TEST(c.wheel.cancel_all() == 100U);
  support::run_to_end(c.context);
  std::size_t refused = 0;
  for (const auto& wait : waits) {
    BOOST_TEST(wait.calls == 1);
    if (wait.error == wheel_errc::too_many_pending) ++refused;
  }
  BOOST_TEST(refused == 300U);
}

BOOST_AUTO_TEST_CASE(has_room_again_after_an_expiry_and_after_a_cancel)
{
  context_with_wheel c(support::with_limit(1));
  outcome expired;
  outcome cancelled;
  outcome last;
  c.wheel.async_wait(1ms, expired.recorder());
  support::run_to_end(c.context);
  c.wheel.async_wait(1h, cancelled.recorder());
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  c.wheel.async_wait(1ms, last.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(expired.succeeded());
  BOOST_TEST(cancelled.aborted());
  BOOST_TEST(last.succeeded());
}

BOOST_AUTO_TEST_CASE(refused_wait_lets_go_of_its_cancellation_slot)
{
  asio::cancellation_signal signal;
  outcome refused;
  {
    context_with_wheel c(support::with_limit(1));
    c.wheel.async_wait(1h, asio::detached);
    c.wheel.async_wait(1h, asio::bind_cancellation_slot(signal.slot(), refused.recorder()));
    signal.slot().clear();  // and the context goes before the refusal is delivered
  }
  BOOST_TEST(refused.calls == 0);
}

BOOST_AUTO_TEST_CASE(lets_a_refused_handler_try_again)
{
  context_with_wheel c(support::with_limit(1));
  outcome first;
  outcome again;
  wheel_timer timer(c.context, 1h);
  timer.async_wait(first.recorder());
  c.wheel.async_wait(1ms, [&](error_code ec) {
    BOOST_TEST(ec == wheel_errc::too_many_pending);
    BOOST_TEST(timer.cancel() == 1U);
    c.wheel.async_wait(1ms, again.recorder());
  });
  support::run_to_end(c.context);
  BOOST_TEST(first.aborted());
  BOOST_TEST(again.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(life)

BOOST_AUTO_TEST_CASE(ends_with_the_context_whatever_is_pending)
{
  const auto alive = std::make_shared<int>(0);
  {
    context_with_wheel c(support::with_limit(20));
    const auto never_called = [alive](error_code) { ++*alive; };
    wheel_timer timer(c.context, 1h);
    for (int i = 0; i < 10; ++i) {
      c.wheel.async_wait(1h, never_called);
      c.wheel.async_wait(0s, never_called);
      timer.async_wait(never_called);  // Every other one is refused.
    }
    timer.cancel();
    BOOST_TEST(alive.use_count() == 32);
  }
  BOOST_TEST(*alive == 0);
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(of_one_wheel_does_not_depend_on_another)
{
  context_with_wheel a;
  outcome of_a;
  a.wheel.async_wait(1ms, of_a.recorder());
  {
    context_with_wheel b;
    outcome of_b;
    b.wheel.async_wait(1ms, of_b.recorder());
    BOOST_TEST(b.wheel.cancel_all() == 1U);
    support::run_to_end(b.context);
    BOOST_TEST(of_b.aborted());
  }
  support::run_to_end(a.context);
  BOOST_TEST(of_a.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()
