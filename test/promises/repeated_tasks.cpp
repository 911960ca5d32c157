// Promise 4, for tasks that repeat: cancel_all() ends also a task that is running, and counts it.
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::wheel_in_virtual_time;

BOOST_AUTO_TEST_SUITE(repeated_task)

BOOST_AUTO_TEST_CASE(is_pending_while_it_runs)
{
  wheel_in_virtual_time c;
  keyed_scheduler<int> tasks(c.wheel);
  std::vector<std::size_t> pending;
  const auto look = [&] { pending.push_back(c.wheel.pending()); };
  tasks.run_every(1, 1s, look, 3);
  tasks.run_after(2, 5s, look);
  c.time.advance_until_idle(1h);
  BOOST_TEST((pending == std::vector<std::size_t>{2, 2, 1, 0}));
  const wheel_stats s = c.wheel.stats();
  BOOST_TEST(s.started == s.expired);
  BOOST_TEST(s.cancelled == 0U);
}

BOOST_AUTO_TEST_CASE(is_cancelled_with_all_waits_by_its_own_function)
{
  for (const bool throws : {false, true}) {
    wheel_in_virtual_time c;
    keyed_scheduler<int> tasks(c.wheel);
    int runs = 0;
    std::size_t cancelled = 0;
    tasks.run_every(1, 1s, [&] {
      if (++runs != 3) return;
      cancelled = c.wheel.cancel_all();
      BOOST_TEST(c.wheel.pending() == 0U);
      BOOST_TEST(!tasks.reschedule(1, 1s));
      if (throws) throw std::runtime_error("a task");
    });
    if (throws) BOOST_CHECK_THROW(c.time.advance(3s), std::runtime_error);
    c.time.advance(1h);
    BOOST_TEST(runs == 3);
    BOOST_TEST(cancelled == 1U);
    BOOST_TEST(!tasks.contains(1));
    BOOST_TEST(c.wheel.stats().cancelled == 1U);
    BOOST_TEST(c.wheel.pending() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(that_was_cancelled_while_it_ran_frees_its_key)
{
  wheel_in_virtual_time c;
  keyed_scheduler<int> tasks(c.wheel);
  int successor = 0;
  tasks.run_every(1, 1s, [&] {
    c.wheel.cancel_all();
    BOOST_TEST(!tasks.cancel(1));
    BOOST_TEST(tasks.run_after(1, 1s, [&] { ++successor; }));
  });
  c.time.advance(10s);
  BOOST_TEST(successor == 1);
}

BOOST_AUTO_TEST_CASE(that_was_cancelled_with_all_waits_is_not_live)
{
  wheel_in_virtual_time c;
  keyed_scheduler<int> tasks(c.wheel);
  int old = 0;
  int successor = 0;
  tasks.run_every(1, 1s, [&] { ++old; });
  tasks.run_after(2, 1s, [&] { ++old; });
  BOOST_TEST(c.wheel.cancel_all() == 2U);
  BOOST_TEST(!tasks.contains(1));
  BOOST_TEST(!tasks.expiry(1).has_value());
  BOOST_TEST(!tasks.reschedule(1, 1s));
  BOOST_TEST(tasks.run_after(1, 1s, [&] { ++successor; }));
  BOOST_TEST(!tasks.cancel(2));
  BOOST_TEST(tasks.run_every(
    2, 1s, [&] { ++successor; }, 2));
  c.time.advance(1s);
  BOOST_TEST(tasks.contains(2));
  c.time.advance(10s);
  BOOST_TEST(old == 0);
  BOOST_TEST(successor == 3);
  BOOST_TEST(tasks.size() == 0U);
  BOOST_TEST(c.wheel.stats().cancelled == 2U);
}

BOOST_AUTO_TEST_CASE(that_ends_while_it_runs_is_counted_once)
{
  wheel_in_virtual_time c;
  keyed_scheduler<int> tasks(c.wheel);
  std::size_t by_scheduler = 0;
  std::size_t by_wheel = 1;
  tasks.run_every(1, 1s, [&] {
    by_scheduler = tasks.cancel_all();
    by_wheel = c.wheel.cancel_all();
  });
  c.time.advance(10s);
  BOOST_TEST(by_scheduler == 1U);
  BOOST_TEST(by_wheel == 0U);
  BOOST_TEST(c.wheel.stats().cancelled == 1U);
}

// Its next wait needs no place of its own: it has that of the run.
BOOST_AUTO_TEST_CASE(keeps_its_place_under_a_limit_while_it_runs)
{
  wheel_in_virtual_time c(support::with_limit(1));
  keyed_scheduler<int> tasks(c.wheel);
  support::outcome other;
  int runs = 0;
  tasks.run_every(
    1, 1s,
    [&] {
      if (++runs == 1) c.wheel.async_wait(1s, other.recorder());
    },
    3);
  c.time.advance(10s);
  BOOST_TEST(runs == 3);
  BOOST_TEST((other.error == wheel_errc::too_many_pending));
}

// Between two runs, for less than a microsecond: so it takes thousands of tries.
BOOST_AUTO_TEST_CASE(takes_one_place_under_the_limit_from_run_to_run)
{
  auto options = support::with_tick(50us);
  options.max_pending = 2;
  support::context_with_wheel c(options);
  keyed_scheduler<int> tasks(c.wheel);
  tasks.run_every(1, 50us, [] {});
  support::running_threads loop(c.context, 1);
  const auto until = std::chrono::steady_clock::now() + 2s;
  bool was_refused = false;
  while (!was_refused && std::chrono::steady_clock::now() < until) {
    std::atomic<bool> ended = false;
    wheel_timer other(c.wheel, 1h);
    other.async_wait([&](error_code ec) {
      if (ec == wheel_errc::too_many_pending) was_refused = true;
      ended = true;
    });
    other.cancel();
    while (!ended) std::this_thread::yield();
  }
  tasks.cancel_all();
  loop.finish();
  BOOST_TEST(!was_refused);
}

BOOST_AUTO_TEST_CASE(on_a_strand_or_not_is_counted_by_a_cancel_from_any_thread)
{
  for (const bool on_strand : {false, true}) {
    auto options = support::with_tick(20us);
    options.shards = 4;
    support::context_with_wheel c(options);
    const auto strand = asio::make_strand(c.context);
    using place = wheel_place<>;
    keyed_scheduler<int> tasks(on_strand ? place(c.wheel, strand) : place(c.wheel));
    support::running_threads loop(c.context, 2);
    constexpr int keys = 8;
    int wrong = 0;
    for (int round = 0; round != 300; ++round) {
      for (int key = 0; key != keys; ++key) {
        while (!tasks.run_every(key, 20us, [] {})) std::this_thread::yield();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(round % 100));
      wrong += c.wheel.cancel_all() != keys ? 1 : 0;
    }
    loop.finish();
    BOOST_TEST(wrong == 0);
    BOOST_TEST(tasks.size() == 0U);
    BOOST_TEST(c.wheel.pending() == 0U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
