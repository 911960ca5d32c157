// Never early, at scale: ten million waits in a release build, a million of them in real time, with
// ticks from 1 us to 1 h and two to a thousand slots, by delay and by deadline, with loops that
// block and threads that start waits meanwhile.
#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>

#include "support/due.hpp"
#include "support/earliest.hpp"
#include "support/early_count.hpp"
#include "support/run.hpp"
#include "support/scale.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::early_count;
using support::scaled;

namespace {

/// Spreads waits over up to four thousand places within `ticks` of the wheel, from just before a
/// tick to just after it. Every other wait is a delay.
class spread {
public:
  spread(wheel_timer_service& wheel, std::uint64_t ticks)
    : wheel_(wheel),
      tick_(wheel.options().tick),
      places_(std::min<std::uint64_t>(ticks, 4096)),
      step_(ticks / places_)
  {}

  void start(std::size_t n, early_count& count)
  {
    for (std::size_t i = 0; i < n; ++i) {
      const duration noise{static_cast<duration::rep>(random_() % 5) - 2};
      const duration delay =
        static_cast<duration::rep>(random_() % places_ * step_) * tick_ + noise;
      const time_point deadline = wheel_.now() + delay;
      if (i % 2 == 0)
        wheel_.async_wait(deadline, count.check(deadline));
      else
        wheel_.async_wait(delay, count.check(support::earliest(wheel_, delay)));
    }
  }

private:
  wheel_timer_service& wheel_;
  duration tick_;
  std::uint64_t places_;
  std::uint64_t step_;
  std::mt19937 random_{7};
};

wheel_options shape(std::chrono::nanoseconds tick, std::size_t slots, clock_source clock)
{
  auto options = support::with_tick(tick);
  options.slots = slots;
  options.clock = clock;
  return options;
}

void check_all(const early_count& count, std::size_t n)
{
  BOOST_TEST(count.ended == n);
  BOOST_TEST(count.early == 0U);
}

/// Starts waits with `start(context, count, n)`, and runs them.
template <class Start>
void check_in_real_time(const wheel_options& options, Start start)
{
  const std::size_t many = scaled(150'000);
  context_with_wheel c(options);
  early_count count{c.wheel};
  start(c, count, many);
  support::run_to_end(c.context);
  check_all(count, many);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ten_million_waits)

BOOST_AUTO_TEST_CASE(in_virtual_time_are_never_early)
{
  const std::size_t many = scaled(200'000);
  for (const std::chrono::nanoseconds tick :
       std::array<std::chrono::nanoseconds, 5>{1us, 37us, 1ms, 1s, 1h}) {
    for (const std::size_t slots : {2U, 64U, 1024U}) {
      for (const std::uint64_t ticks : {4'096U, 300'000U, 1'000'000U}) {
        support::wheel_in_virtual_time v(shape(tick, slots, clock_source::precise));
        early_count count{v.wheel};
        spread(v.wheel, ticks).start(many, count);
        v.time.advance(static_cast<duration::rep>(ticks + 2) * tick);
        check_all(count, many);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(in_real_time_are_never_early)
{
  for (const std::chrono::nanoseconds tick :
       std::array<std::chrono::nanoseconds, 3>{1us, 200us, 5ms}) {
    for (const auto clock : {clock_source::precise, clock_source::coarse}) {
      check_in_real_time(shape(tick, 256, clock), [tick](auto& c, early_count& count, auto n) {
        spread(c.wheel, static_cast<std::uint64_t>(100ms / tick)).start(n, count);
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(in_real_time_are_never_early_when_handlers_block)
{
  const auto options = shape(100us, 64, clock_source::precise);
  check_in_real_time(options, [](auto& c, early_count& count, auto n) {
    spread(c.wheel, 2000).start(n, count);
    for (int i = 0; i < 20; ++i)
      c.wheel.async_wait(i * 10ms, [&c](error_code) { support::spin(c.wheel, 3ms); });
  });
}

BOOST_AUTO_TEST_CASE(in_real_time_are_never_early_when_another_thread_starts_them)
{
  std::thread other;
  const auto options = shape(10us, 1024, clock_source::precise);
  check_in_real_time(options, [&other](auto& c, early_count& count, auto n) {
    other = std::thread([&c, &count, n, work = asio::make_work_guard(c.context)] {
      spread(c.wheel, 5000).start(n, count);
    });
  });
  other.join();
}

BOOST_AUTO_TEST_SUITE_END()
