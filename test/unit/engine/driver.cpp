// When the driver sets its timer, and when it does not.
#include <detail/engine/driver.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <new>
#include <utility>

#include "support/own_executor.hpp"

namespace asio = boost::asio;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;

namespace {

/// Not inlined, because GCC 12 then warns of a thread_pool's executor that is never there.
[[gnu::noinline]] native_executor native_to(asio::any_io_executor ex)
{
  return native_executor(ex);
}

/// A driver in a context, with one thing to do.
struct driver_alone : driver_client {
  driver_alone() : native(native_to(context.get_executor())) {}

  /// With an executor that has no memory for its first function.
  explicit driver_alone(std::function<void(driver_alone&)> while_it_is_refused)
    : meanwhile([this, f = std::move(while_it_is_refused)] { f(*this); }),
      native(native_to(support::own_executor(context.get_executor(), has_memory)))
  {}

  [[nodiscard]] maybe_tick next_tick() noexcept override { return next; }
  void pass() override
  {
    ++passes;
    next = {};
  }
  void follow_pass() override {}
  void turn_was_refused() noexcept override { subject.retry_turn(); }

  void need_pass_in(std::chrono::nanoseconds d)
  {
    next = in(d);
    subject.wake_at(next);
  }
  [[nodiscard]] tick in(std::chrono::nanoseconds d) const
  {
    return clock.tick_ceil(clock.now() + d);
  }

  asio::io_context context;
  std::function<void()> meanwhile;
  std::function<bool()> has_memory = [this] {
    if (!meanwhile) return true;
    std::exchange(meanwhile, nullptr)();
    throw std::bad_alloc();
  };
  wheel_clock clock{asio_wheel::clock_source::precise, 1ms};
  int passes = 0;
  maybe_tick next;
  native_executor native;
  driver subject{native, context, clock, *this};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(driver_alone_in_a_context)

BOOST_AUTO_TEST_CASE(sleeps_until_there_is_something_to_do)
{
  driver_alone d;
  const auto begin = d.clock.now();
  asio::post(d.context, [&] { d.need_pass_in(3ms); });
  d.context.run();
  BOOST_TEST((d.clock.now() - begin >= 3ms));
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 1U);
}

BOOST_AUTO_TEST_CASE(does_at_once_what_is_past)
{
  driver_alone d;
  asio::post(d.context, [&] { d.need_pass_in(-1h); });
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

BOOST_AUTO_TEST_CASE(does_at_once_what_is_past_without_the_timer)
{
  driver_alone d;
  asio::post(d.context, [&] {
    d.need_pass_in(1h);
    d.subject.wake_at(at_once);
    d.subject.wake_at(at_once);  // one pass does for both
  });
  d.context.poll();
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

// Between filing a wait and asking for a wake-up a thread may lose its processor; and the wait may
// have ended when it goes on.
BOOST_AUTO_TEST_CASE(does_not_sleep_for_a_wait_that_has_ended_meanwhile)
{
  driver_alone d;
  asio::post(d.context, [&] { d.subject.wake_at(d.in(1h)); });
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 0);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

BOOST_AUTO_TEST_CASE(does_not_sleep_for_what_is_not_needed_any_more)
{
  driver_alone d;
  asio::post(d.context, [&] { d.need_pass_in(1h); });
  d.context.poll();
  d.subject.cancel_wake_up(*std::exchange(d.next, maybe_tick()));
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 0);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

// A request cancels the timer's wait, whose function carries it out.
BOOST_AUTO_TEST_CASE(sets_the_timer_once_for_all_that_ask_while_it_waits)
{
  driver_alone d;
  asio::post(d.context, [&] { d.need_pass_in(1h); });
  d.context.poll();
  BOOST_TEST(!d.context.stopped());
  d.need_pass_in(1min);
  d.subject.rearm();
  d.next = {};
  d.subject.cancel_wake_up(d.in(1min));
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 0);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

BOOST_AUTO_TEST_CASE(sets_the_timer_once_for_all_that_ask_while_it_does_not_wait)
{
  driver_alone d;
  d.subject.rearm();
  d.need_pass_in(3ms);
  d.subject.cancel_wake_up(tick{});
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 1U);
}

// While a request is on its way nobody else asks, so it has to arrive.
BOOST_AUTO_TEST_CASE(sets_the_timer_for_those_who_counted_on_a_request_that_was_refused)
{
  driver_alone d([](driver_alone& self) { self.need_pass_in(3ms); });
  d.subject.cancel_wake_up(tick{});
  BOOST_TEST(!d.meanwhile);
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 1U);
}

// The wait that another has replaced completes, too.
BOOST_AUTO_TEST_CASE(makes_no_pass_when_the_timer_is_set_anew)
{
  driver_alone d;
  asio::post(d.context, [&] {
    d.need_pass_in(1h);
    d.need_pass_in(1min);
    d.need_pass_in(3ms);
  });
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 1U);
}

// Whichever of the two waits completes first carries it out, and the other finds nothing.
BOOST_AUTO_TEST_CASE(a_request_behind_a_replaced_wait_is_carried_out_once)
{
  driver_alone d;
  asio::post(d.context, [&] {
    d.need_pass_in(1h);
    d.need_pass_in(1min);
    d.next = tick{};
    d.subject.rearm();
  });
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
