// Promise 3, in order: by tick, and within a tick as one thread started them.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "support/run.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using namespace std::chrono_literals;
using support::context_with_wheel;

namespace {

/// Keeps the order in which waits ended.
struct arrival {
  std::vector<std::size_t> order;

  auto note(std::size_t i)
  {
    return [this, i](error_code ec) {
      BOOST_TEST(!ec);
      order.push_back(i);
    };
  }

  /// Whether 0, 1, 2, ... n-1 arrived in this order.
  [[nodiscard]] bool is_sequence_of(std::size_t n) const
  {
    return order.size() == n && std::is_sorted(order.begin(), order.end());
  }
};

/// A wait that ended: its deadline, and its number among its thread's waits.
struct ending {
  time_point deadline;
  std::size_t number;
};

/// How many waits ended after one whose deadline is later by a tick or more.
std::size_t overtaken(const std::vector<ending>& ended, std::chrono::nanoseconds tick)
{
  std::size_t n = 0;
  auto latest = time_point::min();
  for (const auto& e : ended) {
    if (e.deadline + tick <= latest) ++n;
    latest = std::max(latest, e.deadline);
  }
  return n;
}

/// How many waits ended after one of the same deadline that was started later.
std::size_t out_of_turn(const std::vector<ending>& ended)
{
  std::size_t n = 0;
  std::map<time_point, std::size_t> latest;
  for (const auto& e : ended) {
    if (e.number < latest[e.deadline]) ++n;
    latest[e.deadline] = std::max(latest[e.deadline], e.number);
  }
  return n;
}

/// Checks the order of waits whose deadlines are spread over 35 ms.
void check_order_by_tick(wheel_options options, bool stall)
{
  constexpr std::size_t many = 2000;
  constexpr std::size_t per_deadline = 4;
  support::with_time_enough(5ms, [&](std::chrono::milliseconds ahead) {
    context_with_wheel c(options);
    const auto first = c.wheel.now() + ahead;
    support::delays delays(0ms, 35ms);
    std::vector<time_point> deadlines(many / per_deadline);
    for (auto& deadline : deadlines) deadline = first + delays.next();

    std::vector<ending> ended;
    for (std::size_t i = 0; i < many; ++i) {
      const auto deadline = deadlines[i % deadlines.size()];
      c.wheel.async_wait(deadline, [&ended, deadline, i](error_code) {
        ended.push_back({deadline, i});
      });
    }
    // A wait whose deadline is past when it starts does not queue behind the others.
    if (c.wheel.now() >= first) return false;
    if (stall) std::this_thread::sleep_until(first + 35ms + 2 * options.tick);
    support::run_to_end(c.context);
    BOOST_TEST(ended.size() == many);
    BOOST_TEST(overtaken(ended, options.tick) == 0U);
    BOOST_TEST(out_of_turn(ended) == 0U);
    return true;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(in_order)

BOOST_AUTO_TEST_CASE(waits_of_different_ticks_complete_by_tick)
{
  for (const std::chrono::nanoseconds tick : {100us, 1000us}) {
    for (const std::size_t slots : {4U, 1024U}) {
      auto options = support::with_tick(tick);
      options.slots = slots;
      BOOST_TEST_CONTEXT(slots << " slots of " << tick.count() << " ns")
      {
        check_order_by_tick(options, false);
        check_order_by_tick(options, true);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(waits_of_one_deadline_complete_as_started)
{
  constexpr std::size_t many = 1000;
  support::wheel_in_virtual_time v;
  arrival arrived;
  for (std::size_t i = 0; i < many; ++i) v.wheel.async_wait(v.start + 30ms, arrived.note(i));
  v.time.advance(30ms);
  BOOST_TEST(arrived.is_sequence_of(many));
}

BOOST_AUTO_TEST_CASE(a_late_start_does_not_overtake_its_own_deadline)
{
  context_with_wheel c;
  arrival arrived;
  const auto deadline = c.wheel.now() + 1ms;
  c.wheel.async_wait(deadline, arrived.note(0));
  std::this_thread::sleep_until(deadline + 5ms);  // Nobody runs the context meanwhile.
  c.wheel.async_wait(deadline, arrived.note(1));
  support::run_to_end(c.context);
  BOOST_TEST(arrived.is_sequence_of(2));
}

BOOST_AUTO_TEST_CASE(past_waits_complete_as_started)
{
  constexpr std::size_t many = 300;
  context_with_wheel c;
  arrival arrived;
  for (std::size_t i = 0; i < many; ++i) c.wheel.async_wait(0ns, arrived.note(i));
  support::run_to_end(c.context);
  BOOST_TEST(arrived.is_sequence_of(many));
}

BOOST_AUTO_TEST_CASE(a_cascade_keeps_the_order_of_starts)
{
  // With two slots a level, waits for one deadline that start now, soon and later begin on
  // different levels and meet on the finest.
  constexpr std::size_t rounds = 12;
  constexpr std::size_t per_round = 20;
  auto options = support::with_tick(500us);
  options.slots = 2;
  support::wheel_in_virtual_time v(options);
  arrival arrived;
  std::size_t next = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    v.wheel.async_wait(2ms * static_cast<int>(round), [&](error_code) {
      for (std::size_t i = 0; i < per_round; ++i) {
        v.wheel.async_wait(v.start + 40ms, arrived.note(next++));
      }
    });
  }
  v.time.advance(40ms);
  BOOST_TEST(v.wheel.stats().cascaded > 0U);
  BOOST_TEST(arrived.is_sequence_of(rounds * per_round));
}

BOOST_AUTO_TEST_CASE(any_number_of_cascades_keeps_the_order_of_starts)
{
  constexpr std::size_t ticks = 130;
  constexpr std::size_t per_tick = 20;
  auto options = support::with_tick(1ms);
  options.slots = 2;
  support::wheel_in_virtual_time v(options);
  arrival arrived;
  for (std::size_t i = 0; i < ticks * per_tick; ++i)
    v.wheel.async_wait(v.start + (1 + i / per_tick) * 1ms, arrived.note(i));
  v.time.advance(ticks * 1ms);
  BOOST_TEST(v.wheel.stats().cascaded > ticks * per_tick);
  BOOST_TEST(arrived.is_sequence_of(ticks * per_tick));
}

BOOST_AUTO_TEST_CASE(timers_and_plain_waits_share_one_order)
{
  constexpr std::size_t many = 200;
  support::wheel_in_virtual_time v;
  arrival arrived;
  const auto deadline = v.start + 30ms;
  std::deque<wheel_timer> timers;
  for (std::size_t i = 0; i < many; ++i) {
    if (i % 2 == 0) {
      v.wheel.async_wait(deadline, arrived.note(i));
    } else {
      timers.emplace_back(v.context, deadline).async_wait(arrived.note(i));
    }
  }
  v.time.advance(30ms);
  BOOST_TEST(arrived.is_sequence_of(many));
}

BOOST_AUTO_TEST_CASE(each_starting_thread_finds_its_own_order)
{
  constexpr std::size_t threads = 4;
  constexpr std::size_t per_thread = 300;
  auto options = support::with_tick(1ms);
  options.shards = 8;
  support::wheel_in_virtual_time v(options);
  std::array<arrival, threads> arrived;
  {
    std::vector<std::thread> starters;
    for (auto& mine : arrived) {
      starters.emplace_back([&] {
        for (std::size_t i = 0; i < per_thread; ++i)
          v.wheel.async_wait(v.start + 30ms, mine.note(i));
      });
    }
    for (auto& thread : starters) thread.join();
  }
  v.time.advance(30ms);
  for (const auto& mine : arrived) BOOST_TEST(mine.is_sequence_of(per_thread));
}

BOOST_AUTO_TEST_CASE(ticks_stay_in_order_across_the_shards_of_several_threads)
{
  constexpr std::size_t per_thread = 500;
  auto options = support::with_tick(1ms);
  options.shards = 8;
  support::wheel_in_virtual_time v(options);
  std::vector<ending> ended;
  {
    std::vector<std::thread> starters;
    for (int t = 0; t < 4; ++t) {
      starters.emplace_back([&, t] {
        support::delays delays(5ms + t * 1us, 30ms);
        for (std::size_t i = 0; i < per_thread; ++i) {
          const auto deadline = v.start + delays.next();
          v.wheel.async_wait(deadline, [&, i, deadline](error_code) {
            ended.push_back({deadline, i});
          });
        }
      });
    }
    for (auto& thread : starters) thread.join();
  }
  v.time.advance(30ms);
  BOOST_TEST(ended.size() == 4 * per_thread);
  BOOST_TEST(overtaken(ended, options.tick) == 0U);
}

BOOST_AUTO_TEST_CASE(a_timer_of_another_threads_shard_does_not_break_the_order)
{
  // The timers' waits are in the other thread's shard; this thread's other waits are not.
  constexpr std::size_t many = 200;
  auto options = support::with_tick(1ms);
  options.shards = 8;
  support::wheel_in_virtual_time v(options);
  arrival arrived;
  std::size_t theirs = 0;
  const auto deadline = v.start + 30ms;
  std::deque<wheel_timer> timers;
  std::thread other([&] {
    for (std::size_t i = 0; i < many / 2; ++i) {
      timers.emplace_back(v.context, deadline).async_wait([&](error_code) { ++theirs; });
    }
  });
  other.join();
  for (std::size_t i = 0; i < many; ++i) {
    if (i % 2 == 0) {
      timers[i / 2].async_wait(arrived.note(i));
    } else {
      v.wheel.async_wait(deadline, arrived.note(i));
    }
  }
  v.time.advance(30ms);
  BOOST_TEST(theirs == many / 2);
  BOOST_TEST(arrived.is_sequence_of(many));
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_takes_no_other_of_its_shard_ahead)
{
  auto options = support::with_tick(1ms);
  options.shards = 8;
  for (int round = 0; round < 2; ++round) {  // one thread may share the shard of this one
    support::wheel_in_virtual_time v(options);
    arrival arrived;
    const auto deadline = v.start + 30ms;
    std::deque<wheel_timer> timers;
    std::thread([&] {
      for (int i = 0; i < 2; ++i) timers.emplace_back(v.context, deadline);
    }).join();
    v.wheel.async_wait(deadline, [&, note = arrived.note(0)](error_code ec) mutable {
      note(ec);
      timers[0].cancel();  // due, and next
    });
    timers[0].async_wait([](error_code ec) { BOOST_TEST(ec == asio::error::operation_aborted); });
    v.wheel.async_wait(deadline, arrived.note(1));
    timers[1].async_wait(arrived.note(2));
    v.time.advance(30ms);
    BOOST_TEST(arrived.is_sequence_of(3));
  }
}

BOOST_AUTO_TEST_CASE(timers_that_several_threads_start_at_once_do_not_break_the_order)
{
  // Each wait is one of the wheel, in the thread's own shard, or of a timer that all share.
  constexpr std::size_t threads = 4;
  constexpr std::size_t per_thread = 500;
  auto options = support::with_tick(1ms);
  options.shards = 8;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    support::wheel_in_virtual_time v(options);
    const std::array deadlines{v.start + 10ms, v.start + 10ms + 1us, v.start + 2s};
    std::deque<wheel_timer> shared;
    for (std::size_t i = 0; i < 2 * deadlines.size(); ++i)
      shared.emplace_back(v.context, deadlines[i % deadlines.size()]);

    std::vector<ending> all;
    std::array<std::vector<ending>, threads> of_thread;
    {
      std::vector<std::thread> starters;
      for (std::size_t t = 0; t < threads; ++t) {
        starters.emplace_back([&, t] {
          std::minstd_rand random(static_cast<unsigned>(seed * threads + t));
          for (std::size_t i = 0; i < per_thread; ++i) {
            const std::size_t which = random() % shared.size();
            const time_point deadline = deadlines[which % deadlines.size()];
            const auto note = [&, t, deadline, i](error_code) {
              all.push_back({deadline, i});
              of_thread[t].push_back({deadline, i});
            };
            if (random() % 4 == 0)
              shared[which].async_wait(note);
            else
              v.wheel.async_wait(deadline, note);
          }
        });
      }
      for (auto& thread : starters) thread.join();
    }
    v.time.advance(3s);
    BOOST_TEST(all.size() == threads * per_thread);
    BOOST_TEST(overtaken(all, options.tick) == 0U);
    for (const auto& ended : of_thread) BOOST_TEST(out_of_turn(ended) == 0U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
