// keyed_scheduler: which keys are live, what runs and when, and what a task may do to its
// scheduler.
#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using scheduler_type = keyed_scheduler<std::string>;

namespace {

constexpr auto nothing = [] {};

/// Ends the life of a scheduler when it is moved, called or destroyed while a lock is held: its
/// members would never return.
struct asks_back {
  const scheduler_type* scheduler;

  explicit asks_back(const scheduler_type& s) : scheduler(&s) {}
  asks_back(asks_back&& other) noexcept : scheduler(other.scheduler) { ask(); }
  asks_back& operator=(asks_back&&) = delete;
  ~asks_back() { ask(); }
  void operator()() const { ask(); }
  void ask() const { BOOST_TEST(scheduler->size() <= 2U); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(scheduler)

BOOST_AUTO_TEST_CASE(runs_a_task_once_after_its_delay)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  const auto start = c.wheel.now();
  int runs = 0;
  BOOST_TEST(scheduler.run_after("a", 3ms, [&] {
    ++runs;
    BOOST_TEST((c.wheel.now() >= start + 3ms));
  }));
  BOOST_TEST(scheduler.contains("a"));
  BOOST_TEST(scheduler.size() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(runs == 1);
  BOOST_TEST(!scheduler.contains("a"));
  BOOST_TEST(scheduler.size() == 0U);
}

BOOST_AUTO_TEST_CASE(runs_a_task_as_often_as_it_is_told)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  std::vector<std::size_t> live;
  BOOST_TEST(scheduler.run_every(
    "a", 1ms,
    [&] {
      ++runs;
      live.push_back(scheduler.size());
    },
    3));
  support::run_to_end(c.context);
  BOOST_TEST(runs == 3);
  // As the last run begins there is none to come.
  const std::vector<std::size_t> expected{1, 1, 0};
  BOOST_TEST(live == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(runs_a_task_for_ever)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  scheduler.run_every("a", 200us, [&] { ++runs; });
  support::run_until(c.context, [&] { return runs == 20; });
  BOOST_TEST(scheduler.cancel("a"));
  support::run_to_end(c.context);
  BOOST_TEST(runs == 20);
}

BOOST_AUTO_TEST_CASE(runs_once_a_tick_if_its_period_is_shorter)
{
  for (const duration period : {duration{1ns}, duration{100ns}}) {
    context_with_wheel c;
    scheduler_type scheduler(c.wheel);
    const auto start = c.wheel.now();
    int runs = 0;
    scheduler.run_every("a", period, [&] { ++runs; });
    support::run_until(c.context, [&] { return c.wheel.now() > start + 20ms; });
    const auto ticks = (c.wheel.now() - start) / c.wheel.options().tick;
    BOOST_TEST((runs > 0 && runs <= ticks + 2));
  }
}

BOOST_AUTO_TEST_CASE(never_overtakes_a_wait_of_the_same_delay)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  for (const duration delay : {duration{100ns}, duration{1us}, duration{10us}}) {
    int overtaken = 0;
    for (int i = 0; i != 200; ++i) {
      bool is_over = false;
      c.wheel.async_wait(delay, [&](error_code) { is_over = true; });
      scheduler.run_after("a", delay, [&] { overtaken += !is_over; });
      support::run_to_end(c.context);
    }
    BOOST_TEST(overtaken == 0);
  }
}

BOOST_AUTO_TEST_CASE(does_not_drift)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  const auto start = c.wheel.now();
  int runs = 0;
  scheduler.run_every(
    "a", 700us,
    [&] {
      ++runs;
      BOOST_TEST((c.wheel.now() >= start + runs * 700us));
    },
    20);
  support::run_to_end(c.context);
  BOOST_TEST(runs == 20);
}

BOOST_AUTO_TEST_CASE(skips_the_turns_that_pass_while_a_task_runs)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  const auto start = c.wheel.now();
  std::vector<time_point> begins;
  std::vector<time_point> ends;
  scheduler.run_every(
    "a", 4ms,
    [&] {
      begins.push_back(c.wheel.now());
      // Over at least two turns to come.
      while (c.wheel.now() < begins.back() + 10ms) std::this_thread::yield();
      ends.push_back(c.wheel.now());
    },
    3);
  const auto after = c.wheel.now();
  support::run_to_end(c.context);
  BOOST_TEST(begins.size() == 3U);
  for (std::size_t i = 1; i < begins.size(); ++i) {
    // The next run is not before the first turn after the end of the last.
    const auto turn = start + ((ends[i - 1] - after) / 4ms + 1) * 4ms;
    BOOST_TEST((begins[i] >= turn));
  }
}

BOOST_AUTO_TEST_CASE(refuses_a_second_task_under_a_live_key)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int first = 0;
  int second = 0;
  BOOST_TEST(scheduler.run_after("a", 1ms, [&] { ++first; }));
  BOOST_TEST(!scheduler.run_after("a", 1ms, [&] { ++second; }));
  BOOST_TEST(!scheduler.run_every("a", 1ms, [&] { ++second; }));
  BOOST_TEST(scheduler.run_after("b", 1ms, nothing));
  BOOST_TEST(scheduler.size() == 2U);
  BOOST_TEST(c.wheel.pending() == 2U);
  support::run_to_end(c.context);
  BOOST_TEST(first == 1);
  BOOST_TEST(second == 0);
  BOOST_TEST(scheduler.run_after("a", 1ms, nothing));
}

BOOST_AUTO_TEST_CASE(cancels_by_key)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  scheduler.run_after("once", 1ms, [&] { ++runs; });
  scheduler.run_every("again", 1ms, [&] { ++runs; });
  BOOST_TEST(scheduler.cancel("once"));
  BOOST_TEST(scheduler.cancel("again"));
  BOOST_TEST(!scheduler.cancel("once"));
  BOOST_TEST(!scheduler.cancel("never seen"));
  BOOST_TEST(!scheduler.contains("again"));
  BOOST_TEST(scheduler.run_after("once", 1ms, [&] { runs += 10; }));
  BOOST_TEST(c.wheel.pending() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(runs == 10);
}

BOOST_AUTO_TEST_CASE(cancels_a_task_that_is_due_and_has_not_run)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  scheduler.run_after("first", 0ms, [&] {
    // Both have expired together.
    runs += scheduler.cancel("second") && scheduler.cancel("third") ? 1 : 10;
  });
  scheduler.run_after("second", 0ms, [&] { runs += 100; });
  scheduler.run_every("third", 1ns, [&] { runs += 100; });
  support::run_to_end(c.context);
  BOOST_TEST(runs == 1);
}

BOOST_AUTO_TEST_CASE(lets_go_of_a_cancelled_function_soon)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  const auto alive = std::make_shared<int>(0);
  scheduler.run_after("a", 1h, [alive] {});
  scheduler.run_every("b", 1h, [alive] {});
  scheduler.cancel("a");
  scheduler.cancel("b");
  support::run_to_end(c.context);
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(takes_functions_that_can_only_be_moved)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int sum = 0;
  scheduler.run_after("a", 1ms, [&, p = std::make_unique<int>(3)] { sum += *p; });
  scheduler.run_every(
    "b", 1ms, [&, p = std::make_unique<int>(4)]() mutable { sum += (*p)++; }, 2);
  support::run_to_end(c.context);
  BOOST_TEST(sum == 3 + 4 + 5);
}

BOOST_AUTO_TEST_CASE(takes_any_key_that_can_be_hashed_and_compared)
{
  struct peer {
    std::string name;
    int port;
    bool operator==(const peer&) const = default;
  };
  struct hash_of_peer {
    std::size_t operator()(const peer& p) const { return std::hash<std::string>{}(p.name); }
  };
  context_with_wheel c;
  keyed_scheduler<peer, hash_of_peer> scheduler(c.wheel);
  BOOST_TEST(scheduler.run_after({"a", 1}, 1h, nothing));
  BOOST_TEST(scheduler.run_after({"a", 2}, 1h, nothing));
  BOOST_TEST(!scheduler.run_after({"a", 1}, 1h, nothing));
  BOOST_TEST(scheduler.cancel({"a", 1}));
  BOOST_TEST(scheduler.contains({"a", 2}));
}

BOOST_AUTO_TEST_CASE(tells_keys_apart_whose_hashes_are_the_same)
{
  struct hash_of_few {
    std::size_t operator()(int key) const { return static_cast<std::size_t>(key % 3); }
  };
  context_with_wheel c;
  keyed_scheduler<int, hash_of_few> scheduler(c.wheel);
  std::set<int> live;
  std::mt19937 random{2024};
  for (int step = 0; step != 2000; ++step) {
    const int key = static_cast<int>(random() % 100);
    if (random() % 2 == 0)
      BOOST_REQUIRE_EQUAL(scheduler.run_after(key, 1h, nothing), live.insert(key).second);
    else
      BOOST_REQUIRE_EQUAL(scheduler.cancel(key), live.erase(key) == 1);
    BOOST_REQUIRE_EQUAL(scheduler.size(), live.size());
    for (int k = 0; k != 100; ++k) BOOST_REQUIRE_EQUAL(scheduler.contains(k), live.contains(k));
  }
}

BOOST_AUTO_TEST_CASE(runs_what_is_past_at_once_but_never_inline)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  asio::post(c.context, [&] {
    scheduler.run_after("a", 0ms, [&] { ++runs; });
    scheduler.run_after("b", -1h, [&] { ++runs; });
    scheduler.run_after("c", duration::min(), [&] { ++runs; });
    BOOST_TEST(runs == 0);
  });
  support::run_to_end(c.context);
  BOOST_TEST(runs == 3);
}

BOOST_AUTO_TEST_CASE(never_runs_what_is_never_due)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  scheduler.run_after("a", duration::max(), [] { BOOST_TEST(false); });
  scheduler.run_every("b", duration::max(), [] { BOOST_TEST(false); });
  c.context.poll();
  BOOST_TEST(scheduler.size() == 2U);
}

BOOST_AUTO_TEST_CASE(refuses_periods_and_times_that_make_no_sense)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  const auto says = [](std::string text) {
    return [text](const std::invalid_argument& e) { return e.what() == text; };
  };
  BOOST_CHECK_EXCEPTION(scheduler.run_every("a", 0ms, nothing), std::invalid_argument,
                        says("keyed_scheduler: period is 0ns; it must be more than 0ns"));
  BOOST_CHECK_EXCEPTION(scheduler.run_every("a", -1ns, nothing), std::invalid_argument,
                        says("keyed_scheduler: period is -1ns; it must be more than 0ns"));
  BOOST_CHECK_EXCEPTION(scheduler.run_every("a", 1ms, nothing, 0), std::invalid_argument,
                        says("keyed_scheduler: times is 0; it must be at least 1"));
  BOOST_TEST(!scheduler.contains("a"));
}

BOOST_AUTO_TEST_CASE(runs_its_tasks_on_its_executor)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  keyed_scheduler<int> of_strand(strand);
  keyed_scheduler<int> of_both({c.wheel, strand});
  keyed_scheduler<int> of_context(c.context);
  BOOST_TEST((of_strand.get_executor() == strand));
  BOOST_TEST((of_context.get_executor() == c.context.get_executor()));
  int on_strand = 0;
  const auto look = [&] { on_strand += strand.running_in_this_thread() ? 1 : 0; };
  of_strand.run_after(1, 1ms, look);
  of_strand.run_every(2, 1ms, look, 2);
  of_both.run_after(1, 1ms, look);
  of_context.run_after(1, 1ms, look);
  BOOST_TEST(c.wheel.pending() == 4U);
  support::run_to_end(c.context);
  BOOST_TEST(on_strand == 4);
}

BOOST_AUTO_TEST_CASE(holds_no_lock_while_a_function_is_moved_called_or_destroyed)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  scheduler.run_after("a", 1ms, asks_back(scheduler));
  scheduler.run_after("a", 1ms, asks_back(scheduler));
  scheduler.run_every("b", 1ms, asks_back(scheduler), 2);
  support::run_to_end(c.context);
  scheduler.run_after("a", 1h, asks_back(scheduler));
  scheduler.run_every("b", 1h, asks_back(scheduler));
  scheduler.cancel("a");
  support::run_until(c.context, [&] { return c.wheel.pending() == 1; });
  // What is left asks back as it goes, so it has to go before the scheduler.
  scheduler.cancel("b");
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(drops_a_task_that_the_wheel_has_no_room_for)
{
  context_with_wheel c(support::with_limit(1));
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  scheduler.run_after("kept", 1ms, [&] { ++runs; });
  scheduler.run_after("refused", 1ms, [&] { runs += 10; });
  BOOST_CHECK_EXCEPTION(support::run_to_end(c.context), boost::system::system_error,
                        [](const auto& e) { return e.code() == wheel_errc::too_many_pending; });
  BOOST_TEST(!scheduler.contains("refused"));
  support::run_to_end(c.context);
  BOOST_TEST(runs == 1);
}

BOOST_AUTO_TEST_CASE(forgets_what_the_wheel_cancels)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  scheduler.run_after("a", 1h, [] { BOOST_TEST(false); });
  scheduler.run_every("b", 1h, [] { BOOST_TEST(false); });
  BOOST_TEST(c.wheel.cancel_all() == 2U);
  support::run_to_end(c.context);
  BOOST_TEST(scheduler.size() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(scheduler_task)

BOOST_AUTO_TEST_CASE(that_runs_once_may_schedule_its_successor_under_its_key)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  std::function<void()> again = [&] {
    BOOST_TEST(!scheduler.contains("a"));
    if (++runs < 4) BOOST_TEST(scheduler.run_after("a", 1ms, again));
  };
  scheduler.run_after("a", 1ms, again);
  support::run_to_end(c.context);
  BOOST_TEST(runs == 4);
}

BOOST_AUTO_TEST_CASE(that_repeats_has_its_key_to_itself_while_it_runs)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  scheduler.run_every("a", 1ms, [&] {
    BOOST_TEST(!scheduler.run_after("a", 1ms, nothing));
    if (++runs == 2) scheduler.cancel("a");
  });
  support::run_to_end(c.context);
  BOOST_TEST(runs == 2);
}

BOOST_AUTO_TEST_CASE(that_cancels_itself_frees_its_key_at_once)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  int successor = 0;
  scheduler.run_every("a", 1ms, [&] {
    ++runs;
    BOOST_TEST(scheduler.cancel("a"));
    BOOST_TEST(!scheduler.cancel("a"));
    BOOST_TEST(scheduler.run_every(
      "a", 1ms, [&] { ++successor; }, 3));
  });
  support::run_to_end(c.context);
  BOOST_TEST(runs == 1);
  BOOST_TEST(successor == 3);
}

BOOST_AUTO_TEST_CASE(that_runs_for_the_last_time_cannot_be_cancelled_any_more)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  const auto try_to_cancel = [&] {
    ++runs;
    BOOST_TEST(!scheduler.cancel("a"));
  };
  scheduler.run_after("a", 1ms, try_to_cancel);
  support::run_to_end(c.context);
  scheduler.run_every("a", 1ms, try_to_cancel, 1);
  support::run_to_end(c.context);
  BOOST_TEST(runs == 2);
}

BOOST_AUTO_TEST_CASE(that_throws_leaves_by_run_and_the_schedule_goes_on)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int once = 0;
  int repeated = 0;
  int other = 0;
  scheduler.run_after("once", 1ms, [&] {
    ++once;
    throw std::runtime_error("once");
  });
  scheduler.run_every(
    "repeated", 1ms,
    [&] {
      if (++repeated < 3) throw std::runtime_error("repeated");
    },
    4);
  scheduler.run_every(
    "other", 1ms, [&] { ++other; }, 4);
  int caught = 0;
  for (bool done = false; !done;) {
    try {
      support::run_to_end(c.context);
      done = true;
    } catch (const std::runtime_error& e) {
      ++caught;
      BOOST_TEST(scheduler.contains("repeated"));
      if (e.what() == std::string("once")) BOOST_TEST(!scheduler.contains("once"));
    }
  }
  BOOST_TEST(caught == 3);
  BOOST_TEST(once == 1);
  BOOST_TEST(repeated == 4);
  BOOST_TEST(other == 4);
}

BOOST_AUTO_TEST_CASE(may_destroy_its_scheduler)
{
  for (const bool repeated : {false, true}) {
    context_with_wheel c;
    auto scheduler = std::make_unique<scheduler_type>(c.wheel);
    const auto alive = std::make_shared<int>(0);
    int runs = 0;
    const auto destroy = [&, alive] {
      ++runs;
      scheduler.reset();
      BOOST_TEST(alive.use_count() > 1);
    };
    scheduler->run_after("victim", 1h, [alive] { BOOST_TEST(false); });
    if (repeated)
      scheduler->run_every("a", 1ms, destroy);
    else
      scheduler->run_after("a", 1ms, destroy);
    support::run_to_end(c.context);
    BOOST_TEST(runs == 1);
    BOOST_TEST(alive.use_count() == 2);
  }
}

BOOST_AUTO_TEST_CASE(goes_with_its_scheduler)
{
  context_with_wheel c;
  {
    scheduler_type scheduler(c.wheel);
    scheduler.run_after("a", 0ms, [] { BOOST_TEST(false); });
    scheduler.run_after("b", 1h, [] { BOOST_TEST(false); });
    scheduler.run_every("c", 1ms, [] { BOOST_TEST(false); });
  }
  BOOST_TEST(c.wheel.pending() == 0U);
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(goes_with_its_context)
{
  const auto alive = std::make_shared<int>(0);
  std::optional<scheduler_type> scheduler;
  {
    context_with_wheel c;
    scheduler.emplace(c.wheel);
    scheduler->run_after("a", 1ms, [alive] { BOOST_TEST(false); });
    scheduler->run_every("b", 1ms, [alive] { BOOST_TEST(false); });
  }
  BOOST_TEST(alive.use_count() == 1);
  BOOST_TEST(scheduler->size() == 0U);
  BOOST_TEST(!scheduler->cancel("a"));
}

BOOST_AUTO_TEST_CASE(never_runs_twice_at_a_time)
{
  context_with_wheel c(support::with_tick(20us));
  keyed_scheduler<int> scheduler(c.wheel);
  struct counter {
    std::atomic<int> inside = 0;
    std::atomic<bool> overlapped = false;
    int runs = 0;  ///< not atomic: what one run writes, the next must see
  };
  std::array<counter, 4> tasks;
  {
    support::running_threads loop(c.context, 3);
    for (int key = 0; key < 4; ++key) {
      auto& task = tasks[static_cast<std::size_t>(key)];
      scheduler.run_every(
        key, 20us,
        [&task] {
          if (++task.inside != 1) task.overlapped = true;
          ++task.runs;
          --task.inside;
        },
        200);
    }
  }
  for (const auto& task : tasks) {
    BOOST_TEST(!task.overlapped);
    BOOST_TEST(task.runs == 200);
  }
}

BOOST_AUTO_TEST_CASE(may_be_cancelled_by_another_thread)
{
  context_with_wheel c;
  scheduler_type scheduler(c.wheel);
  int runs = 0;
  scheduler.run_after("a", 1h, [&] { ++runs; });
  scheduler.run_every("b", 1h, [&] { ++runs; });
  int cancelled = 0;
  std::thread other([&] {
    for (const auto* key : {"a", "b"}) cancelled += scheduler.cancel(key) ? 1 : 0;
  });
  support::run_to_end(c.context);
  other.join();
  BOOST_TEST(cancelled == 2);
  BOOST_TEST(runs == 0);
}

BOOST_AUTO_TEST_SUITE_END()
