// Parity of lifetime: how a wait keeps run() going, and what happens to it when something is
// destroyed.
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using std::chrono::steady_clock;
using support::every_timer;
using support::outcome;

BOOST_AUTO_TEST_SUITE(work)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_idle_timer_is_none, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  BOOST_TEST(context.run() == 0U);
  BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pending_wait_keeps_run_going, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 5ms);
  outcome wait;
  timer.async_wait(wait.recorder());
  context.run();
  BOOST_TEST(wait.succeeded());
  BOOST_TEST((steady_clock::now() >= timer.expiry()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(run_returns_after_the_last_wait, Timer, every_timer)
{
  asio::io_context context;
  Timer soon(context, 2ms);
  Timer later(context, 1h);
  soon.async_wait([&](error_code) { BOOST_TEST(later.cancel() == 1U); });
  outcome last;
  later.async_wait(last.recorder());
  const auto before = steady_clock::now();
  context.run();
  BOOST_TEST(last.aborted());
  BOOST_TEST((steady_clock::now() - before < 30min));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(goes_on_after_stop_and_restart, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 2ms);
  outcome wait;
  asio::post(context, [&] {
    timer.async_wait(wait.recorder());  // here, as 2 ms may pass before run() begins
    context.stop();
  });
  context.run();
  BOOST_TEST(wait.pending());
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(goes_on_in_a_context_that_ran_dry_before, Timer, every_timer)
{
  asio::io_context context;
  for (int round = 0; round < 3; ++round) {
    Timer timer(context, 1ms);
    outcome wait;
    timer.async_wait(wait.recorder());
    support::run_to_end(context);
    BOOST_TEST(wait.succeeded());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(wakes_a_loop_that_already_sleeps, Timer, every_timer)
{
  asio::io_context context;
  Timer later(context, 1h);
  outcome aborted;
  later.async_wait(aborted.recorder());
  std::atomic<bool> expired = false;
  std::optional<Timer> soon;
  std::thread loop([&] { context.run(); });
  asio::post(context, [&] {
    soon.emplace(context, 2ms);
    soon->async_wait([&](error_code ec) {
      expired = !ec;
      later.cancel();
    });
  });
  loop.join();
  BOOST_TEST(expired.load());
  BOOST_TEST(aborted.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_shared_by_the_threads_that_run, Timer, every_timer)
{
  constexpr std::size_t many = 200;
  asio::io_context context;
  std::vector<Timer> timers;
  std::atomic<std::size_t> expired = 0;
  for (std::size_t i = 0; i < many; ++i) timers.emplace_back(context, (i % 5) * 1ms);
  for (auto& timer : timers) {
    timer.async_wait([&](error_code ec) { expired += ec ? 0 : 1; });
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { context.run(); });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(expired.load() == many);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(survives_an_exception_from_a_handler, Timer, every_timer)
{
  asio::io_context context;
  Timer thrower(context, 1ms);
  Timer other(context, 1ms);
  outcome wait;
  thrower.async_wait([](error_code) { throw std::runtime_error("from a handler"); });
  other.async_wait(wait.recorder());
  BOOST_CHECK_THROW(context.run(), std::runtime_error);
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(destruction)

BOOST_AUTO_TEST_CASE_TEMPLATE(of_the_timer_aborts_its_waits, Timer, every_timer)
{
  asio::io_context context;
  std::array<outcome, 2> waits;
  {
    Timer timer(context, 1h);
    for (auto& wait : waits) timer.async_wait(wait.recorder());
  }
  for (const auto& wait : waits) BOOST_TEST(wait.pending());
  support::run_to_end(context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_the_last_owner_may_be_that_of_the_handler, Timer, every_timer)
{
  asio::io_context context;
  outcome wait;
  std::weak_ptr<Timer> watch;
  {
    auto timer = std::make_shared<Timer>(context, 1ms);
    watch = timer;
    timer->async_wait([timer, &wait](error_code ec) { wait.recorder()(ec); });
  }
  BOOST_TEST(!watch.expired());
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST(watch.expired());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_the_context_destroys_handlers_uncalled, Timer, every_timer)
{
  outcome wait;
  std::weak_ptr<Timer> watch;
  {
    asio::io_context context;
    auto timer = std::make_shared<Timer>(context, 1h);
    watch = timer;
    timer->async_wait([timer, &wait](error_code ec) { wait.recorder()(ec); });
    timer.reset();
    context.poll();
    BOOST_TEST(!watch.expired());
  }
  BOOST_TEST(watch.expired());
  BOOST_TEST(wait.pending());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_the_context_destroys_completions_uncalled, Timer, every_timer)
{
  outcome aborted;
  outcome expired;
  std::weak_ptr<int> watch;
  {
    asio::io_context context;
    auto token = std::make_shared<int>(1);
    watch = token;
    Timer cancelled(context, 1h);
    Timer past(context, -1h);
    cancelled.async_wait([token, &aborted](error_code ec) { aborted.recorder()(ec); });
    past.async_wait([token, &expired](error_code ec) { expired.recorder()(ec); });
    BOOST_TEST(cancelled.cancel() == 1U);
  }
  BOOST_TEST(watch.expired());
  BOOST_TEST(aborted.pending());
  BOOST_TEST(expired.pending());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_handlers_may_destroy_other_timers, Timer, every_timer)
{
  // Each handler owns the next one's timer. So destroying a handler while the context shuts down
  // cancels waits on a service that is shutting down.
  std::vector<std::weak_ptr<Timer>> watch;
  {
    asio::io_context context;
    std::vector<std::shared_ptr<Timer>> timers;
    for (int i = 0; i < 6; ++i) timers.push_back(std::make_shared<Timer>(context, 1h));
    for (std::size_t i = 0; i < timers.size(); ++i) {
      watch.emplace_back(timers[i]);
      const auto next = timers[(i + 1) % timers.size()];
      timers[i]->async_wait([next](error_code) { BOOST_TEST(false, "called"); });
    }
  }
  for (const auto& timer : watch) BOOST_TEST(timer.expired());
}

BOOST_AUTO_TEST_SUITE_END()
