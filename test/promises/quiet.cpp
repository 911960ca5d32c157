// Promise 8, quiet: no needless wake-up, and nothing is kept of a cancelled wait.
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "support/heap.hpp"
#include "support/ledger.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

namespace {

std::uint64_t wakeups(const context_with_wheel& c)
{
  return c.wheel.stats().wakeups;
}

/// The number of handlers that the context runs in `time`: the wheel's own, if there are no others.
std::size_t handlers_run(context_with_wheel& c, std::chrono::milliseconds time)
{
  c.context.restart();
  return c.context.run_for(time);
}

// With io_uring alone, Asio leaves a cancelled timer's timeout in the ring and, when that comes,
// runs an operation of its own, which is counted. So it does for its own steady_timer.
#ifdef BOOST_ASIO_HAS_IO_URING_AS_DEFAULT
constexpr std::size_t of_asio = 1;
#else
constexpr std::size_t of_asio = 0;
#endif

}  // namespace

BOOST_AUTO_TEST_SUITE(quiet)

BOOST_AUTO_TEST_CASE(nothing_wakes_a_loop_without_waits)
{
  context_with_wheel c(support::with_tick(100us));
  const auto work = asio::make_work_guard(c.context);
  BOOST_TEST(handlers_run(c, 20ms) == 0U);
  BOOST_TEST(wakeups(c) == 0U);
}

BOOST_AUTO_TEST_CASE(what_has_passed_needs_no_wake_up)
{
  context_with_wheel c(support::with_tick(1us));  // soon beyond tick 0
  outcome distant;
  c.wheel.async_wait(1h, distant.recorder());
  wheel_timer timer(c.context);
  int left = 100;
  const std::function<void()> start = [&] {
    if (left % 2 != 0)
      timer.expires_at(c.wheel.now() - 2ms);
    else
      timer.expires_after(0ms);
    timer.async_wait([&](boost::system::error_code) {
      if (--left != 0) start();
    });
  };
  asio::post(c.context, start);
  while (left != 0 && c.context.run_one_for(20s) != 0) continue;
  BOOST_TEST(left == 0);
  BOOST_TEST(wakeups(c) == 0U);
  BOOST_TEST(distant.pending());
}

BOOST_AUTO_TEST_CASE(nothing_wakes_a_loop_whose_waits_were_cancelled)
{
  support::with_time_enough(20ms, [](std::chrono::milliseconds ahead) {
    context_with_wheel c(support::with_tick(100us));
    const auto work = asio::make_work_guard(c.context);
    int expired = 0;
    int aborted = 0;
    for (int i = 0; i < 100; ++i) {
      c.wheel.async_wait(ahead + i * 100us, [&](error_code ec) { ++(ec ? aborted : expired); });
    }
    c.context.poll();
    BOOST_TEST(c.wheel.cancel_all() + static_cast<std::size_t>(expired) == 100U);
    c.context.poll();
    if (expired != 0) return false;
    BOOST_TEST(aborted == 100);
    BOOST_TEST(handlers_run(c, ahead + 30ms) <= of_asio);
    BOOST_TEST(wakeups(c) == 0U);
    return true;
  });
}

BOOST_AUTO_TEST_CASE(a_far_wait_does_not_wake_before_its_time)
{
  auto options = support::with_tick(100us);
  options.slots = 256;
  context_with_wheel c(options);
  outcome later;
  c.wheel.async_wait(1h, later.recorder());
  c.context.poll();
  BOOST_TEST(handlers_run(c, 30ms) == 0U);
  BOOST_TEST(wakeups(c) == 0U);
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(later.aborted());
}

BOOST_AUTO_TEST_CASE(a_near_wait_wakes_once)
{
  support::with_time_enough(20ms, [](std::chrono::milliseconds ahead) {
    context_with_wheel c(support::with_long_finest_level(100us));
    outcome soon;
    c.wheel.async_wait(ahead, soon.recorder());
    c.context.poll();
    if (!soon.pending()) return false;
    support::run_to_end(c.context);
    BOOST_TEST(soon.succeeded());
    BOOST_TEST(wakeups(c) == 1U);
    return true;
  });
}

BOOST_AUTO_TEST_CASE(a_tick_full_of_waits_wakes_once)
{
  support::with_time_enough(50ms, [](std::chrono::milliseconds ahead) {
    context_with_wheel c(support::with_long_finest_level(1ms));
    int expired = 0;
    const auto deadline = c.wheel.now() + ahead;
    for (int i = 0; i < 5000; ++i) {
      c.wheel.async_wait(deadline, [&](error_code ec) { expired += ec ? 0 : 1; });
    }
    c.context.poll();
    if (c.wheel.now() >= deadline) return false;
    support::run_to_end(c.context);
    BOOST_TEST(expired == 5000);
    BOOST_TEST(wakeups(c) == 1U);
    return true;
  });
}

BOOST_AUTO_TEST_CASE(waits_of_coarse_levels_wake_once_each)
{
  auto options = support::with_tick(100us);
  options.slots = 8;
  context_with_wheel c(options);
  std::size_t expired = 0;
  // 100 to 700 ticks: below 8 levels of factor 2.
  for (int i = 1; i <= 7; ++i)
    c.wheel.async_wait(i * 10ms, [&](error_code ec) { expired += ec ? 0 : 1; });
  support::run_to_end(c.context);
  BOOST_TEST(expired == 7U);
  BOOST_TEST(wakeups(c) <= 7U);  // fewer if this process was held up
}

BOOST_AUTO_TEST_CASE(waits_cancelled_in_time_cost_no_wakeup)
{
  // The usual life of a timeout: started, cancelled, replaced by the next.
  support::with_time_enough(2ms, [](std::chrono::milliseconds ahead) {
    context_with_wheel c(support::with_long_finest_level(1ms));
    wheel_timer timer(c.context);
    outcome last;
    int aborted = 0;
    for (int i = 0; i < 200; ++i) {
      timer.expires_after(30s);
      timer.async_wait([&](error_code ec) { aborted += ec ? 1 : 0; });
      c.context.poll();
    }
    timer.expires_after(ahead);
    timer.async_wait(last.recorder());
    c.context.poll();
    if (!last.pending()) return false;
    support::run_to_end(c.context);
    BOOST_TEST(aborted == 200);
    BOOST_TEST(last.succeeded());
    BOOST_TEST(wakeups(c) == 1U);
    return true;
  });
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_releases_handler_and_memory_at_once)
{
  context_with_wheel c;
  support::ledger books;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  wheel_timer timer(c.context, 1h);
  timer.async_wait(asio::bind_allocator(support::booking_allocator<void>(books),
                                        [held = std::move(held)](error_code) {}));
  BOOST_TEST(timer.cancel() == 1U);
  c.context.poll();
  BOOST_TEST(watch.expired());
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_CASE(cancelled_waits_leave_no_heap_behind)
{
  constexpr int live = 100;
  constexpr int warm_up = 1'000;
  constexpr int churn = 50'000;
  context_with_wheel c;
  for (int i = 0; i < live; ++i) c.wheel.async_wait(2h, [](error_code) {});
  wheel_timer timer(c.context);
  support::delays delays(1s, 1h);
  const auto start_and_cancel = [&](int times) {
    for (int i = 0; i < times; ++i) {
      timer.expires_after(delays.next());
      timer.async_wait([](error_code) {});
      timer.cancel();
      if (i % 16 == 0) c.context.poll();
    }
    c.context.poll();
  };
  start_and_cancel(warm_up);
  const auto before = support::heap_in_use();
  start_and_cancel(churn);
  const auto after = support::heap_in_use();
  BOOST_TEST(c.wheel.pending() == std::size_t{live});
  BOOST_TEST(after <= before + 16 * 1024);
  c.wheel.cancel_all();
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_SUITE_END()
