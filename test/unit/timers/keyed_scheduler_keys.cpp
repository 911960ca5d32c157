// keyed_scheduler: what it does with keys, and when it calls their Hash and Equal.
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/own_executor.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using namespace std::chrono_literals;
using support::wheel_in_virtual_time;

namespace {

/// What the key's functions do. Each call is counted, and may throw.
struct behaviour {
  int calls = 0;
  bool throws = false;

  void operator()()
  {
    ++calls;
    if (throws) throw std::runtime_error("a key");
  }
};
behaviour hashing, comparing, moving;

struct hash {
  std::size_t operator()(int key) const
  {
    hashing();
    return static_cast<std::size_t>(key);
  }
};
struct equal {
  bool operator()(int a, int b) const
  {
    comparing();
    return a == b;
  }
};

struct moving_key {
  explicit moving_key(int n) : number(n) {}
  moving_key(const moving_key& other) : number(other.number) { moving(); }
  moving_key(moving_key&& other) : number(other.number) { moving(); }  // NOLINT
  bool operator==(const moving_key&) const = default;

  int number;
};
struct hash_of_moving_key {
  std::size_t operator()(const moving_key& k) const { return static_cast<std::size_t>(k.number); }
};

/// Asks in all that it does.
struct curious_key {
  explicit curious_key(const std::function<std::size_t()>& s) : scheduler(&s) {}
  curious_key(const curious_key& other) : scheduler(other.scheduler) { ask(); }
  curious_key& operator=(const curious_key&) = delete;
  ~curious_key() { ask(); }
  bool operator==(const curious_key&) const = default;
  std::size_t ask() const { return (*scheduler)(); }

  const std::function<std::size_t()>* scheduler;
};
struct curious_hash {
  std::size_t operator()(const curious_key& k) const { return k.ask(); }
};

/// Each case begins with these.
struct of_the_key {
  of_the_key() { hashing = comparing = moving = {}; }
  wheel_in_virtual_time c;
  keyed_scheduler<int, hash, equal> tasks{c.wheel};
  int runs = 0;
  std::function<void()> run = [this] { ++runs; };

  void all_throw(bool do_they)
  {
    hashing.throws = comparing.throws = moving.throws = do_they;
    hashing.calls = comparing.calls = moving.calls = 0;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(scheduler_key, of_the_key)

// A Hash that threw here stranded the key: it was live for ever.
BOOST_AUTO_TEST_CASE(is_neither_hashed_nor_compared_when_its_time_comes)
{
  tasks.run_every(1, 1s, run);
  tasks.run_every(2, 1s, run, 3);
  tasks.run_after(3, 2s, run);
  all_throw(true);
  c.time.advance(5s);
  BOOST_TEST(hashing.calls == 0);
  BOOST_TEST(comparing.calls == 0);
  all_throw(false);
  BOOST_TEST(runs == 5 + 3 + 1);
  BOOST_TEST(tasks.size() == 1U);
  BOOST_TEST(tasks.contains(1));
}

BOOST_AUTO_TEST_CASE(is_neither_hashed_nor_compared_when_its_task_is_cancelled_with_others)
{
  for (const bool by_wheel : {false, true}) {
    tasks.run_every(1, 1s, run);
    tasks.run_after(2, 1s, run);
    all_throw(true);
    BOOST_TEST((by_wheel ? c.wheel.cancel_all() : tasks.cancel_all()) == 2U);
    c.time.advance(5s);
    BOOST_TEST(hashing.calls + comparing.calls == 0);
    all_throw(false);
    BOOST_TEST(tasks.size() == 0U);
  }
  BOOST_TEST(runs == 0);
}

BOOST_AUTO_TEST_CASE(whose_hash_or_comparison_throws_leaves_everything_as_it_was)
{
  tasks.run_every(1, 1s, run);
  for (behaviour* const b : {&hashing, &comparing}) {
    b->throws = true;
    BOOST_CHECK_THROW(tasks.run_after(1, 1s, run), std::runtime_error);
    BOOST_CHECK_THROW(tasks.cancel(1), std::runtime_error);
    BOOST_CHECK_THROW(tasks.reschedule(1, 1h), std::runtime_error);
    BOOST_CHECK_THROW(static_cast<void>(tasks.contains(1)), std::runtime_error);
    BOOST_CHECK_THROW(static_cast<void>(tasks.expiry(1)), std::runtime_error);
    b->throws = false;
  }
  c.time.advance(3s);
  BOOST_TEST(runs == 3);
  BOOST_TEST(tasks.size() == 1U);
  BOOST_TEST(c.wheel.pending() == 1U);
}

BOOST_AUTO_TEST_CASE(is_not_moved_any_more_when_its_task_is_there)
{
  keyed_scheduler<moving_key, hash_of_moving_key> of_moving(c.wheel);
  of_moving.run_every(moving_key(1), 1s, run, 3);
  of_moving.run_after(moving_key(2), 1s, run);
  all_throw(true);
  c.time.advance(2s);
  BOOST_CHECK_THROW(of_moving.run_after(moving_key(3), 1s, run), std::runtime_error);
  c.time.advance(2s);
  all_throw(false);
  BOOST_TEST(runs == 3 + 1);
  BOOST_TEST(of_moving.size() == 0U);
}

BOOST_AUTO_TEST_CASE(may_ask_its_scheduler_as_it_is_hashed_moved_and_destroyed)
{
  std::function<std::size_t()> size = [] { return 0U; };
  {
    keyed_scheduler<curious_key, curious_hash> curious(c.wheel);
    size = [&] { return curious.size() * 0; };
    const curious_key key(size);
    curious.run_every(
      key, 1s, [] {}, 2);
    c.time.advance(1s);
    BOOST_TEST(!curious.run_after(key, 1s, [] {}));
    BOOST_TEST(curious.reschedule(key, 1s));
    c.time.advance(1s);
    BOOST_TEST(curious.run_after(key, 1h, [] {}));
    BOOST_TEST(curious.cancel(key));
    BOOST_TEST(curious.run_after(key, 1h, [] {}));
    BOOST_TEST(curious.cancel_all() == 1U);
    c.context.restart();
    c.context.poll();
    size = [] { return 0U; };
  }
}

BOOST_AUTO_TEST_CASE(may_be_asked_for_by_the_executor_that_gets_its_function)
{
  std::function<bool()> asks = [&] { return tasks.size() < 10; };
  keyed_scheduler<int> of_executor(
    {c.wheel, support::own_executor(c.context.get_executor(), asks)});
  asks = [&] { return of_executor.size() < 10; };
  of_executor.run_every(1, 1s, run, 3);
  of_executor.run_after(2, 1h, run);
  BOOST_TEST(of_executor.reschedule(2, 1ms));
  of_executor.run_after(3, 0s, run);
  c.time.advance(5s);
  BOOST_TEST(runs == 5);
}

BOOST_AUTO_TEST_CASE(is_free_when_the_executor_drops_a_turn_of_its_task)
{
  std::function<bool()> takes = [] { return true; };
  keyed_scheduler<int> dropped({c.wheel, support::own_executor(c.context.get_executor(), takes)});
  dropped.run_every(1, 1s, run);
  c.time.advance(2s);
  BOOST_TEST(dropped.contains(1));
  takes = [] { return false; };
  c.time.advance(1s);
  BOOST_TEST(!dropped.contains(1));
  BOOST_TEST(dropped.size() == 0U);
  BOOST_TEST(c.wheel.pending() == 0U);
  takes = [] { return true; };
  BOOST_TEST(dropped.run_after(1, 1s, run));
  c.time.advance(1s);
  BOOST_TEST(runs == 3);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(scheduler_cancel_all, of_the_key)

BOOST_AUTO_TEST_CASE(says_how_many_runs_were_to_come)
{
  BOOST_TEST(tasks.cancel_all() == 0U);
  tasks.run_after(1, 1s, run);
  tasks.run_after(2, 1h, run);
  tasks.run_every(3, 2s, run);
  c.time.advance(1s);
  BOOST_TEST(tasks.cancel_all() == 2U);
  BOOST_TEST(tasks.size() == 0U);
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.wheel.stats().cancelled == 2U);
  c.time.advance(2h);
  BOOST_TEST(runs == 1);
}

BOOST_AUTO_TEST_CASE(by_a_task_counts_it_only_if_it_was_to_run_again)
{
  std::size_t cancelled = 0;
  const auto cancel_all = [&] { cancelled += tasks.cancel_all(); };
  tasks.run_after(1, 1s, cancel_all);
  c.time.advance(1s);
  BOOST_TEST(cancelled == 0U);
  tasks.run_every(1, 1s, cancel_all);
  tasks.run_after(2, 1s, run);
  c.time.advance(10s);
  BOOST_TEST(cancelled == 2U);
  BOOST_TEST(runs == 0);
}

BOOST_AUTO_TEST_CASE(leaves_the_scheduler_fit_for_use)
{
  tasks.run_after(1, 1h, run);
  tasks.cancel_all();
  BOOST_TEST(tasks.run_after(1, 1s, run));
  c.time.advance(1s);
  BOOST_TEST(runs == 1);
}

BOOST_AUTO_TEST_CASE(in_another_thread_ends_a_task_before_its_key_is_free)
{
  constexpr int n = 20000;
  support::context_with_wheel real({.tick = 10us});
  for (int round = 0; round < 5; ++round) {
    keyed_scheduler<int> many(real.wheel);
    std::vector<int> is_free(n);
    int late = 0;
    for (int i = 0; i < n; ++i) many.run_every(i, 1ms, [&, i] { late += is_free[std::size_t(i)]; });
    std::atomic<bool> is_over = false;
    std::thread other([&] {
      many.cancel_all();
      is_over = true;
    });
    while (!is_over) {
      real.context.poll_one();
      for (int i = 0; i < n; i += 100)
        if (!many.contains(i)) is_free[std::size_t(i)] = 1;
    }
    other.join();
    BOOST_TEST(many.size() == 0U);
    BOOST_TEST(late == 0);
    real.context.run_for(2ms);
  }
}

BOOST_AUTO_TEST_CASE(in_another_thread_leaves_keys_that_can_be_cancelled_or_taken)
{
  constexpr int n = 20000;
  support::context_with_wheel real;
  keyed_scheduler<int> many(real.wheel);
  for (int i = 0; i < n; ++i) many.run_after(i, 1h, run);
  std::atomic<std::size_t> cancelled = 0;
  int taken = 0;
  support::in_threads(3, [&](int t) {
    if (t < 2) cancelled += many.cancel_all();
    for (int i = 0; t == 2 && i < n; i += 2) {
      cancelled += many.cancel(i) ? 1U : 0U;
      taken += many.run_after(i, 1h, run) ? 1 : 0;
    }
  });
  BOOST_TEST(taken == n / 2);
  cancelled += many.cancel_all();
  BOOST_TEST(cancelled == std::size_t(n + taken));
  BOOST_TEST(many.size() == 0U);
  BOOST_TEST(real.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
