// Promise 7, honest work count: a pending wait keeps run() going, an idle wheel does not.
#include <atomic>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::context_with_wheel;
using support::outcome;

/// A context's executor that calls `before_post` once, at a moment at which a thread may lose its
/// processor: before the context knows the function that the thread is about to post.
struct interrupted_executor {
  asio::io_context* context;
  std::function<void()>* before_post;

  template <class Function>
  void execute(Function&& f) const
  {
    if (const auto interrupt = std::exchange(*before_post, nullptr)) interrupt();
    asio::post(*context, std::forward<Function>(f));
  }
  [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept
  {
    return *context;
  }
  [[nodiscard]] interrupted_executor require(asio::execution::blocking_t::never_t) const noexcept
  {
    return *this;
  }
  bool operator==(const interrupted_executor&) const = default;
};

BOOST_AUTO_TEST_SUITE(honest_work_count)

BOOST_AUTO_TEST_CASE(an_idle_wheel_is_no_work)
{
  context_with_wheel c;
  wheel_timer timer(c.context);
  timer.expires_after(1h);
  BOOST_TEST(c.context.run() == 0U);
  BOOST_TEST(c.context.stopped());
}

BOOST_AUTO_TEST_CASE(an_object_that_nobody_waits_on_is_no_work_however_it_changes)
{
  context_with_wheel c;
  wheel_watchdog watchdog(c.context, 2h);
  wheel_watchdog under_pressure(c.context, idle_window{1h, 2h});
  asio::post(c.context, [&] {
    watchdog.set_timeout(1h);
    c.wheel.set_pressure(1);
  });
  c.context.run_for(support::patience);
  BOOST_TEST(c.context.stopped());
  BOOST_TEST(c.wheel.stats().wakeups == 0U);
}

BOOST_AUTO_TEST_CASE(a_deferred_wait_is_no_work_until_launched)
{
  context_with_wheel c;
  auto operation = c.wheel.async_wait(1ms);
  BOOST_TEST(c.context.run() == 0U);
  outcome wait;
  std::move(operation)(wait.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(a_pending_wait_is_work)
{
  context_with_wheel c;
  outcome wait;
  const auto deadline = c.wheel.now() + 5ms;
  c.wheel.async_wait(deadline, wait.recorder());
  c.context.run();
  BOOST_TEST(wait.succeeded());
  BOOST_TEST((c.wheel.now() >= deadline));
}

BOOST_AUTO_TEST_CASE(a_wait_for_ever_is_work)
{
  context_with_wheel c;
  outcome wait;
  c.wheel.async_wait(wheel_timer_service::duration::max(), wait.recorder());
  c.context.run_for(5ms);
  BOOST_TEST(!c.context.stopped());
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(run_returns_at_once_after_the_last_wait)
{
  // Cancelled waits leave nothing behind, however far off the wheel's timer was.
  for (const auto later : {20s, 3600s, 1000000s}) {
    context_with_wheel c;
    outcome aborted;
    outcome expired;
    wheel_timer timer(c.context, later);
    timer.async_wait(aborted.recorder());
    c.context.poll();
    c.wheel.async_wait(2ms, [&](error_code ec) {
      expired.recorder()(ec);
      timer.cancel();
    });
    const auto before = steady_clock::now();
    c.context.run();
    BOOST_TEST(expired.succeeded());
    BOOST_TEST(aborted.aborted());
    BOOST_TEST((steady_clock::now() - before < 10s));
  }
}

BOOST_AUTO_TEST_CASE(cancelling_everything_lets_run_return)
{
  context_with_wheel c;
  int aborted = 0;
  for (int i = 0; i < 1000; ++i) {
    c.wheel.async_wait(i * 1s + 60s, [&](error_code ec) { aborted += ec ? 1 : 0; });
  }
  c.context.poll();
  BOOST_TEST(c.wheel.cancel_all() == 1000U);
  support::run_to_end(c.context);
  BOOST_TEST(aborted == 1000);
}

BOOST_AUTO_TEST_CASE(a_wheel_that_was_used_is_idle_again)
{
  context_with_wheel c;
  for (int round = 0; round < 3; ++round) {
    outcome wait;
    c.wheel.async_wait(1ms, wait.recorder());
    support::run_to_end(c.context);
    BOOST_TEST(wait.succeeded());
    c.context.restart();
    BOOST_TEST(c.context.run() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_stopped_context_picks_up_where_it_was)
{
  context_with_wheel c;
  outcome wait;
  c.wheel.async_wait(100ms, wait.recorder());
  c.wheel.async_wait(1ms, [&](error_code) { c.context.stop(); });
  c.context.run();
  BOOST_TEST(wait.pending());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

// A wait started by another thread requests a pass at the moment at which the driver's timer fires.
BOOST_AUTO_TEST_CASE(a_pass_that_meets_the_timer_leaves_nothing_behind)
{
  for (int round = 0; round < 200; ++round) {
    context_with_wheel c;
    wheel_timer later(c.context, 1h), soon(c.context);
    later.async_wait([](error_code) {});
    std::thread other([&] {
      soon.expires_after(1ms);
      soon.async_wait([&](error_code) { later.cancel(); });
    });
    support::run_to_end(c.context);
    other.join();
  }
}

// The pass finds the wheel empty, but the cancelled wait's handler has yet to be called.
BOOST_AUTO_TEST_CASE(a_pass_that_meets_a_cancel_by_another_thread_leaves_the_context_running)
{
  support::with_time_enough(20ms, [](std::chrono::milliseconds ahead) {
    asio::io_context context;
    std::function<void()> before_post;
    auto& wheel = asio::make_service<wheel_timer_service>(
      context, interrupted_executor{&context, &before_post});
    outcome wait;
    wheel_timer timer(wheel, ahead);
    timer.async_wait(wait.recorder());
    context.poll();
    if (wheel.now() >= timer.expiry()) return false;
    std::this_thread::sleep_until(timer.expiry() + wheel.options().tick);
    std::size_t calls = 0;
    before_post = [&] {
      while (calls < 10 && !context.stopped()) calls += context.poll_one();
    };
    BOOST_TEST(timer.cancel() == 1U);
    BOOST_TEST(calls == 10U);
    BOOST_TEST(!context.stopped());
    BOOST_TEST(wait.pending());
    support::run_to_end(context);
    BOOST_TEST(wait.aborted());
    return true;
  });
}

BOOST_AUTO_TEST_CASE(a_pool_ends_after_its_last_wait)
{
  asio::thread_pool pool(2);
  auto& wheel = use_wheel(pool);
  std::atomic<int> expired = 0;
  for (int i = 0; i < 50; ++i) {
    wheel.async_wait(i % 5 * 1ms, [&](error_code ec) { expired += ec ? 0 : 1; });
  }
  pool.join();
  BOOST_TEST(expired.load() == 50);
}

BOOST_AUTO_TEST_CASE(waits_of_other_threads_count_as_soon_as_they_are_started)
{
  context_with_wheel c;
  for (int round = 0; round < 50; ++round) {
    outcome wait;
    std::thread([&] { c.wheel.async_wait(100us, wait.recorder()); }).join();
    c.context.restart();
    c.context.run();
    BOOST_TEST(wait.succeeded());
  }
}

BOOST_AUTO_TEST_SUITE_END()
