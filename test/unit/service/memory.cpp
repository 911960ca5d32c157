// Memory that is there before the waits, and memory that goes when they have gone.
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <limits>
#include <new>
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

wheel_options with_reserve(std::size_t waits)
{
  wheel_options options;
  options.reserve = waits;
  return options;
}

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

BOOST_AUTO_TEST_CASE(reserved_for_waits_is_there_when_they_start)
{
  if (!can_measure) return;
  const auto taken_by_starts = [](const wheel_options& options) {
    support::context_with_wheel c(options);
    pending_timers timers(c.context, at_peak);
    const std::size_t before = support::resident_memory();
    timers.start();
    return support::resident_memory() - before;
  };
  support::context_with_wheel(wheel_options{}).wheel.release_memory();  // of what ran before
  BOOST_TEST(taken_by_starts(with_reserve(at_peak)) < megabyte);  // pages of the table of slots
  support::context_with_wheel(wheel_options{}).wheel.release_memory();
  BOOST_TEST(taken_by_starts(wheel_options{}) > 10 * megabyte);
}

BOOST_AUTO_TEST_CASE(reserved_by_one_wheel_after_the_other_is_the_same)
{
  if (!can_measure) return;
  {
    support::context_with_wheel first(with_reserve(at_peak));
  }
  const std::size_t before = support::resident_memory();
  for (int i = 0; i < 10; ++i) support::context_with_wheel again(with_reserve(at_peak));
  BOOST_TEST(support::resident_memory() < before + 2 * megabyte);
}

BOOST_AUTO_TEST_CASE(reserved_by_two_wheels_is_there_for_both)
{
  if (!can_measure) return;
  support::context_with_wheel a(with_reserve(at_peak / 2));
  support::context_with_wheel b(with_reserve(at_peak / 2));
  a.wheel.release_memory();  // which keeps what is reserved
  pending_timers of_a(a.context, at_peak / 2), of_b(b.context, at_peak / 2);
  const std::size_t before = support::resident_memory();
  of_a.start();
  of_b.start();
  BOOST_TEST(support::resident_memory() - before < 2 * megabyte);
}

BOOST_AUTO_TEST_CASE(too_much_to_reserve_is_refused_and_leaves_no_wheel)
{
  asio::io_context context;
  if (!support::under_sanitizer) {
    BOOST_CHECK_THROW(make_wheel(context, with_reserve(std::numeric_limits<std::size_t>::max())),
                      std::bad_alloc);
    BOOST_TEST(!asio::has_service<wheel_timer_service>(context));
  }
  make_wheel(context, with_reserve(1));
  use_wheel(context).async_wait(1ms, [](error_code error) { BOOST_TEST(!error); });
  support::run_to_end(context);
}

BOOST_AUTO_TEST_CASE(of_shards_that_no_thread_uses_is_not_taken)
{
  constexpr std::size_t cores = 64;
  std::deque<asio::io_context> contexts(cores);
  wheel_options options;
  options.shards = cores;
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

BOOST_AUTO_TEST_CASE(released_goes_back_to_the_system_after_a_peak)
{
  support::context_with_wheel c;
  c.wheel.release_memory();
  pending_timers timers(c.context, support::under_sanitizer ? at_peak / 40 : at_peak);
  const std::size_t before = support::resident_memory();
  timers.start();
  const std::size_t peak = support::resident_memory();
  c.wheel.cancel_all();
  support::run_to_end(c.context);
  c.wheel.release_memory();
  if (!can_measure) return;
  BOOST_TEST(peak > before + 10 * megabyte);  // 64 bytes each at least, but for what was at hand
  BOOST_TEST(support::resident_memory() < before + (peak - before) / 20 + 3 * megabyte);
}

BOOST_AUTO_TEST_CASE(released_between_waits_that_stay_does_them_no_harm)
{
  support::context_with_wheel c;
  virtual_time time(c.wheel);
  const std::size_t n = support::under_sanitizer ? at_peak / 40 : at_peak;
  pending_timers timers(c.context, n);
  c.wheel.release_memory();
  const std::size_t before = support::resident_memory();
  timers.start();
  const std::size_t peak = support::resident_memory();
  timers.cancel_but(1000);
  c.context.poll();
  c.wheel.release_memory();
  if (can_measure) BOOST_TEST(support::resident_memory() < before + (peak - before) / 4);
  BOOST_TEST(c.wheel.pending() == n / 1000);

  // What is started now takes the memory that was given back, among those that stayed.
  pending_timers others(c.context, n);
  others.start();
  time.advance(2min);
  BOOST_TEST(timers.expired() == n / 1000);
  BOOST_TEST(timers.cancelled() == n - n / 1000);
  BOOST_TEST(others.expired() == n);
}

BOOST_AUTO_TEST_CASE(released_while_threads_start_and_cancel_and_look)
{
  support::context_with_wheel c;
  support::running_threads running(c.context, 2);
  const int rounds = static_cast<int>(support::scaled(4000)) / 10 + 20;
  support::in_threads(3, [&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      if (thread == 0) {
        c.wheel.release_memory();
        continue;
      }
      std::vector<wheel_timer> timers;
      for (int i = 0; i < 100; ++i) {
        timers.emplace_back(c.context).expires_after((i % 10) * 1ms);
        timers.back().async_wait([](error_code) {});
      }
      if (thread == 2 && round % 8 == 0) static_cast<void>(c.wheel.pending_by_handler());
    }
  });
  running.finish();
  BOOST_TEST(c.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
