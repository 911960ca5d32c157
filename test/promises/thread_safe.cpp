// Promise 12, thread-safe: the service and every timer, from any thread at once.
//
// In each case threads use one object, and then the figures must balance. test/races has a program
// for each race.
#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::in_threads;
using support::running_threads;

namespace {

/// How many waits their owners started, and how these ended.
struct books {
  std::atomic<std::size_t> started = 0;
  std::atomic<std::size_t> succeeded = 0;
  std::atomic<std::size_t> aborted = 0;
  std::atomic<std::size_t> refused = 0;

  auto entry()
  {
    ++started;
    return [this](error_code ec) {
      if (!ec) {
        ++succeeded;
      } else if (ec == wheel_errc::too_many_pending) {
        ++refused;
      } else {
        ++aborted;
      }
    };
  }

  [[nodiscard]] std::size_t ended() const { return succeeded + aborted + refused; }

  void compare_with(const wheel_stats& stats) const
  {
    BOOST_TEST(stats.started == started - refused);
    BOOST_TEST(stats.expired == succeeded.load());
    BOOST_TEST(stats.cancelled == aborted.load());
    BOOST_TEST(stats.rejected == refused.load());
    BOOST_TEST(stats.pending == 0U);
  }
};

constexpr int rounds = 2000;

}  // namespace

BOOST_AUTO_TEST_SUITE(thread_safe)

BOOST_AUTO_TEST_CASE(many_threads_start_waits_on_one_wheel)
{
  context_with_wheel c(support::with_tick(100us));
  books b;
  {
    running_threads loops(c.context, 2);
    in_threads(4, [&](int t) {
      for (int i = 0; i < rounds; ++i) c.wheel.async_wait((i + t) % 7 * 100us, b.entry());
    });
  }
  BOOST_TEST(b.ended() == b.started.load());
  BOOST_TEST(b.aborted.load() == 0U);
  b.compare_with(c.wheel.stats());
}

BOOST_AUTO_TEST_CASE(all_the_service_can_do_may_be_done_at_once)
{
  auto options = support::with_tick(100us);
  options.max_pending = 200;
  context_with_wheel c(options);
  books b;
  std::atomic<std::size_t> cancelled = 0;
  std::atomic<int> contradictions = 0;
  // pending() adds up one shard after the other, while waits end in one and start in another.
  const std::size_t most_seen = c.wheel.options().shards * options.max_pending;
  {
    running_threads loops(c.context, 2);
    in_threads(4, [&](int t) {
      for (int i = 0; i < rounds; ++i) {
        c.wheel.async_wait(i % 5 * 300us, b.entry());
        c.wheel.async_wait(c.wheel.now() + 1ms, b.entry());
        if (t == 0 && i % 16 == 0) cancelled += c.wheel.cancel_all();
        if (t == 1 && i % 16 == 0) {
          const auto stats = c.wheel.stats();
          if (stats.started < stats.expired + stats.cancelled) ++contradictions;
        }
        if (t == 2 && i % 16 == 0 && c.wheel.pending() > most_seen) ++contradictions;
      }
    });
  }
  BOOST_TEST(b.ended() == b.started.load());
  BOOST_TEST(contradictions.load() == 0);
  BOOST_TEST(b.aborted.load() == cancelled.load());
  b.compare_with(c.wheel.stats());
}

BOOST_AUTO_TEST_CASE(one_timer_serves_many_threads)
{
  context_with_wheel c(support::with_tick(100us));
  books b;
  std::atomic<std::size_t> cancelled = 0;
  {
    running_threads loops(c.context, 2);
    wheel_timer timer(c.context);
    in_threads(4, [&](int t) {
      for (int i = 0; i < rounds; ++i) {
        switch ((i + t) % 5) {
          case 0: cancelled += timer.expires_after(i % 3 * 200us); break;
          case 1: cancelled += timer.expires_at(timer.expiry()); break;
          case 2: cancelled += timer.cancel_one(); break;
          case 3: timer.async_wait(b.entry()); break;
          default: timer.async_wait(b.entry());
        }
      }
    });
    cancelled += timer.cancel();
  }
  BOOST_TEST(b.ended() == b.started.load());
  BOOST_TEST(b.aborted.load() == cancelled.load());
  b.compare_with(c.wheel.stats());
}

BOOST_AUTO_TEST_CASE(handlers_on_all_threads_start_the_next_waits)
{
  asio::thread_pool pool(4);
  auto& wheel = make_wheel(pool, support::with_tick(100us));
  std::atomic<int> left = 5000;
  std::atomic<int> failed = 0;
  struct chain {
    wheel_timer_service& wheel;
    std::atomic<int>& left;
    std::atomic<int>& failed;
    void operator()(error_code ec)
    {
      if (ec) ++failed;
      if (const int n = --left; n > 0) wheel.async_wait(n % 3 * 100us, *this);
    }
  };
  for (int i = 0; i < 64; ++i) wheel.async_wait(0s, chain{wheel, left, failed});
  pool.join();
  BOOST_TEST(left.load() <= 0);
  BOOST_TEST(failed.load() == 0);
  BOOST_TEST(wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(many_threads_find_the_same_wheel)
{
  for (int round = 0; round < 20; ++round) {
    asio::io_context context;
    std::atomic<wheel_timer_service*> found = nullptr;
    std::atomic<int> others = 0;
    in_threads(4, [&](int) {
      auto* mine = &use_wheel(context);
      wheel_timer_service* expected = nullptr;
      if (!found.compare_exchange_strong(expected, mine) && expected != mine) ++others;
    });
    BOOST_TEST(others.load() == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
