// keyed_scheduler: moving the next run of a task, and when that is.
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/run.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using time_point = wheel_timer_service::time_point;
using namespace std::chrono_literals;
using support::wheel_in_virtual_time;

namespace {

/// A scheduler in virtual time, and when its tasks ran.
struct scheduler_in_virtual_time : wheel_in_virtual_time {
  keyed_scheduler<std::string> tasks{wheel};
  std::vector<duration> runs;

  [[nodiscard]] auto recorder()
  {
    return [this] { runs.push_back(elapsed()); };
  }
  [[nodiscard]] std::optional<duration> expiry(const std::string& key) const
  {
    const auto t = tasks.expiry(key);
    if (!t) return std::nullopt;
    return *t - start;
  }
  [[nodiscard]] bool ran_at(std::vector<duration> expected)
  {
    time.advance_until_idle(1h);
    return runs == expected;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rescheduling)

BOOST_AUTO_TEST_CASE(moves_a_run_both_ways)
{
  scheduler_in_virtual_time c;
  c.tasks.run_after("later", 5s, c.recorder());
  c.tasks.run_after("sooner", 50s, c.recorder());
  BOOST_TEST(c.tasks.reschedule("later", 20s));
  BOOST_TEST(c.tasks.reschedule("sooner", 1s));
  BOOST_TEST((c.expiry("later") == 20s && c.expiry("sooner") == 1s));
  BOOST_TEST(c.ran_at({1s, 20s}));
}

// Its turn has passed already, but not the tick to which that is rounded up.
BOOST_AUTO_TEST_CASE(to_the_present_needs_no_further_tick)
{
  scheduler_in_virtual_time c;
  c.tasks.run_after("task", 1500us, c.recorder());
  c.time.advance(1750us);
  BOOST_TEST(c.tasks.reschedule("task", 0ns));
  BOOST_TEST(c.ran_at({1750us}));
}

BOOST_AUTO_TEST_CASE(leaves_one_wait_however_often_it_is_done)
{
  scheduler_in_virtual_time c;
  c.tasks.run_after("a", 5s, c.recorder());
  const auto started = c.wheel.stats().started;
  for (int i = 0; i != 100; ++i) BOOST_TEST(c.tasks.reschedule("a", 10s * (i % 3 + 1)));
  BOOST_TEST(c.wheel.stats().started == started);
  BOOST_TEST(c.wheel.stats().cancelled == 0U);
  BOOST_TEST(c.wheel.pending() == 1U);
  BOOST_TEST(c.ran_at({10s}));
}

BOOST_AUTO_TEST_CASE(does_nothing_to_a_key_that_is_not_live)
{
  scheduler_in_virtual_time c;
  bool during = true;
  c.tasks.run_after("a", 1s, [&] { during = c.tasks.reschedule("a", 1s); });
  BOOST_TEST(!c.tasks.reschedule("b", 1s));
  BOOST_TEST(!c.expiry("b").has_value());
  c.time.advance(2s);
  BOOST_TEST(!during);
  BOOST_TEST(!c.tasks.reschedule("a", 1s));
  c.tasks.run_after("c", 1s, c.recorder());
  c.tasks.cancel("c");
  BOOST_TEST(!c.tasks.reschedule("c", 1s));
  BOOST_TEST(c.ran_at({}));
}

BOOST_AUTO_TEST_CASE(does_nothing_to_what_was_cancelled_with_all_waits)
{
  scheduler_in_virtual_time c;
  c.tasks.run_after("cancelled", 5s, c.recorder());
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  BOOST_TEST(!c.tasks.reschedule("cancelled", 1s));
  c.tasks.run_every(
    "again", 10s,
    [&] {
      c.runs.push_back(c.elapsed());
      BOOST_TEST(c.tasks.reschedule("again", 2s));
      if (c.runs.size() < 2) return;
      BOOST_TEST(c.wheel.cancel_all() == 1U);
      BOOST_TEST(!c.tasks.reschedule("again", 2s));
    },
    4);
  BOOST_TEST(c.ran_at({10s, 12s}));
}

BOOST_AUTO_TEST_CASE(counts_the_turns_from_the_new_one)
{
  scheduler_in_virtual_time c;
  c.tasks.run_every("a", 10s, c.recorder(), 3);
  c.time.advance(12s);
  BOOST_TEST((c.expiry("a") == 20s));
  BOOST_TEST(c.tasks.reschedule("a", 3s));
  BOOST_TEST(c.ran_at({10s, 15s, 25s}));
}

BOOST_AUTO_TEST_CASE(may_be_done_by_the_function_itself)
{
  scheduler_in_virtual_time c;
  std::vector<duration> expiries;
  c.tasks.run_every("a", 10s, [&] {
    c.recorder()();
    expiries.push_back(*c.expiry("a"));
    BOOST_TEST(c.tasks.reschedule("a", 1s));
    expiries.push_back(*c.expiry("a"));
    if (c.runs.size() == 3) c.tasks.cancel("a");
  });
  BOOST_TEST(c.ran_at({10s, 11s, 12s}));
  BOOST_TEST((expiries == std::vector<duration>{20s, 11s, 21s, 12s, 22s, 13s}));
}

BOOST_AUTO_TEST_CASE(takes_any_delay)
{
  scheduler_in_virtual_time c;
  c.tasks.run_after("now", 5s, c.recorder());
  c.tasks.run_after("never", 5s, c.recorder());
  BOOST_TEST(c.tasks.reschedule("now", -1h));
  BOOST_TEST(c.tasks.reschedule("never", duration::max()));
  BOOST_TEST(c.runs.empty());
  BOOST_TEST((c.tasks.expiry("never") == time_point::max()));
  BOOST_TEST(c.ran_at({0s}));
  BOOST_TEST(c.tasks.reschedule("never", 1s));
  c.time.advance(2s);
  BOOST_TEST(c.runs.size() == 2U);
}

BOOST_AUTO_TEST_CASE(puts_off_what_is_due_and_has_not_begun)
{
  support::context_with_wheel c;
  keyed_scheduler<int> tasks(c.wheel);
  int runs = 0;
  tasks.run_after(1, 1ms, [&] {
    ++runs;
    BOOST_TEST(tasks.reschedule(2, 1h));
  });
  tasks.run_after(2, 1ms, [&] { ++runs; });
  const auto both_due = c.wheel.now() + 5ms;
  while (c.wheel.now() < both_due) std::this_thread::yield();
  support::run_until(c.context, [&] { return runs == 1; });
  c.context.poll();
  BOOST_TEST(runs == 1);
  BOOST_TEST(tasks.contains(2));
}

BOOST_AUTO_TEST_CASE(by_another_thread_never_loses_or_doubles_a_run)
{
  support::context_with_wheel c;
  keyed_scheduler<int> tasks(c.wheel);
  constexpr int keys = 50;
  std::atomic<int> runs{0};
  bool done = false;
  // Until the other thread is done: its tasks may all have run before.
  auto work = asio::make_work_guard(c.context);
  for (int k = 0; k != keys; ++k) tasks.run_after(k, 1h, [&] { ++runs; });
  std::thread other([&] {
    for (int round = 0; round != 200; ++round)
      for (int k = 0; k != keys; ++k) {
        tasks.reschedule(k, std::chrono::microseconds(round % 5 * 300 + 100));
        tasks.reschedule(k, 1h);
      }
    for (int k = 0; k != keys; ++k) tasks.reschedule(k, 1ms);
    asio::post(c.context, [&] {
      done = true;
      work.reset();
    });
  });
  support::run_until(c.context, [&] { return done && tasks.size() == 0; });
  other.join();
  BOOST_TEST(runs == keys);
}

BOOST_AUTO_TEST_SUITE_END()
