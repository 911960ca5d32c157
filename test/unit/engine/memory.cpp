// Memory of waits and wheels: what is not used is not taken, and goes back after a peak.
#include <algorithm>
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "support/resident.hpp"
#include "support/run.hpp"
#include "support/scale.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

// A sanitizer has memory of its own, and allocates waits one by one.
constexpr bool can_measure =
#if defined(__linux__)
  !support::under_sanitizer;
#else
  false;
#endif

constexpr std::size_t at_peak = 200'000;
constexpr std::size_t megabyte = std::size_t{1} << 20;

/// Waits of random delays from 1 s to 1 min, which are cancelled with this.
class pending_timers {
public:
  pending_timers(asio::io_context& context, std::size_t n)
  {
    support::delays delays(1s, 60s);
    for (std::size_t i = 0; i < n; ++i) timers_.emplace_back(context).expires_after(delays.next());
  }

  void start()
  {
    for (wheel_timer& t : timers_)
      t.async_wait([this](error_code error) { error ? ++cancelled_ : ++expired_; });
  }

  /// Cancels all but each `one_of`th.
  void cancel_but(std::size_t one_of)
  {
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      if (i % one_of != 0) timers_[i].cancel();
    }
  }

  [[nodiscard]] std::size_t cancelled() const { return cancelled_; }
  [[nodiscard]] std::size_t expired() const { return expired_; }

private:
  std::deque<wheel_timer> timers_;
  std::size_t cancelled_ = 0;
  std::size_t expired_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(memory)

BOOST_AUTO_TEST_CASE(of_shards_that_no_thread_uses_is_not_taken)
{
  constexpr std::size_t cores = 64;
  std::deque<asio::io_context> contexts(cores);
  wheel_options options;
  options.shards = cores;
  asio::io_context first;  // brings the code of all this into memory
  make_wheel(first, options);
  const std::size_t before = support::resident_memory();
  for (asio::io_context& context : contexts) make_wheel(context, options);
  if (can_measure) BOOST_TEST(support::resident_memory() - before < cores * 32 * 1024);
  for (asio::io_context& context : contexts) use_wheel(context).async_wait(1h, [](error_code) {});
  if (can_measure) BOOST_TEST(support::resident_memory() - before < 20 * megabyte);
  for (asio::io_context& context : contexts) BOOST_TEST(use_wheel(context).pending() == 1u);
}

BOOST_AUTO_TEST_CASE(of_shards_is_taken_by_threads_that_come_at_once)
{
  const int rounds = static_cast<int>(support::scaled(2000)) / 10 + 20;
  for (int round = 0; round < rounds; ++round) {
    wheel_options options;
    options.shards = 8;
    support::context_with_wheel c(options);
    std::atomic<int> expired = 0;
    {
      support::running_threads running(c.context, 2);
      support::in_threads(4, [&](int thread) {
        for (int i = 0; i < 4; ++i)
          c.wheel.async_wait(thread * 100us, [&](error_code error) { expired += !error; });
        if (thread == 0) static_cast<void>(c.wheel.pending_by_handler());
      });
    }
    BOOST_TEST(expired == 16);
  }
}

BOOST_AUTO_TEST_CASE(goes_back_to_the_system_after_a_peak)
{
  for (const bool all_at_once : {true, false}) {
    support::context_with_wheel c;
    virtual_time time(c.wheel);
    pending_timers timers(c.context, support::under_sanitizer ? at_peak / 40 : at_peak);
    const std::size_t before = support::resident_memory();
    timers.start();
    const std::size_t peak = support::resident_memory();
    if (all_at_once) {
      c.wheel.cancel_all();
      c.context.poll();
    } else {
      time.advance(2min);  // in an order that has nothing to do with that of the starts
    }
    if (!can_measure) continue;
    BOOST_TEST(peak > before + 10 * megabyte);  // 64 bytes each at least
    BOOST_TEST(support::resident_memory() < before + (peak - before) / 4 + 3 * megabyte);
  }
}

BOOST_AUTO_TEST_CASE(goes_back_around_waits_that_stay)
{
  support::context_with_wheel c;
  virtual_time time(c.wheel);
  const std::size_t n = support::under_sanitizer ? at_peak / 40 : at_peak;
  pending_timers timers(c.context, n);
  const std::size_t before = support::resident_memory();
  timers.start();
  const std::size_t peak = support::resident_memory();
  timers.cancel_but(2000);
  c.context.poll();
  if (can_measure) BOOST_TEST(support::resident_memory() < before + (peak - before) / 2);
  BOOST_TEST(c.wheel.pending() == (n + 1999) / 2000);

  // What is started now takes the memory that was given back, among those that stayed.
  pending_timers others(c.context, n);
  others.start();
  time.advance(2min);
  BOOST_TEST(timers.expired() == (n + 1999) / 2000);
  BOOST_TEST(timers.cancelled() == n - (n + 1999) / 2000);
  BOOST_TEST(others.expired() == n);
}

BOOST_AUTO_TEST_CASE(of_waits_that_end_in_another_thread_is_used_again)
{
  support::context_with_wheel c;
  const std::size_t n = support::under_sanitizer ? at_peak / 200 : at_peak / 10;
  std::size_t after_first = 0;
  for (int round = 0; round < 20; ++round) {
    pending_timers timers(c.context, n);
    timers.start();
    std::thread([&] {
      c.wheel.cancel_all();
      c.context.restart();
      c.context.poll();
    }).join();
    BOOST_TEST(timers.cancelled() == n);
    if (round == 1) after_first = support::resident_memory();
  }
  if (can_measure) BOOST_TEST(support::resident_memory() < after_first + 4 * megabyte);
}

BOOST_AUTO_TEST_CASE(threads_that_end_and_leave_a_wait_take_few_mappings)
{
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  support::context_with_wheel c;
  const auto thread_leaves_a_wait = [&] {
    std::thread([&] { c.wheel.async_wait(1h, [](error_code) {}); }).join();
  };
  thread_leaves_a_wait();
  const auto before = mappings();
  for (int i = 0; i != 200; ++i) thread_leaves_a_wait();
  if (can_measure) BOOST_TEST(mappings() < before + 100);
  BOOST_TEST(c.wheel.cancel_all() == 201U);
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_SUITE_END()
