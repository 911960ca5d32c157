// When the driver sets its timer, and when it does not.
#include <asio_wheel/detail/service/driver.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>

namespace asio = boost::asio;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;

namespace {

/// Not inlined, because GCC 12 then warns of a thread_pool's executor that is never there.
[[gnu::noinline]] native_executor native_to(asio::any_io_executor ex)
{
  return native_executor(ex);
}

/// A driver in a context, whose passes find nothing.
struct driver_alone : driven {
  tick pass() override
  {
    ++passes;
    return no_tick;
  }
  void follow_pass() override {}
  [[nodiscard]] bool needs_pass(tick) const noexcept override { return is_needed; }

  [[nodiscard]] tick in(std::chrono::nanoseconds d) const
  {
    return clock.tick_ceil(clock.now() + d);
  }

  asio::io_context context;
  wheel_clock clock{asio_wheel::clock_source::precise, 1ms};
  int passes = 0;
  bool is_needed = false;
  native_executor native = native_to(context.get_executor());
  driver subject{native, context, clock, *this};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(driver_alone_in_a_context)

BOOST_AUTO_TEST_CASE(sleeps_until_a_wake_up_that_is_needed)
{
  driver_alone d;
  d.is_needed = true;
  const auto begin = d.clock.now();
  asio::post(d.context, [&] { d.subject.wake_at(d.in(3ms)); });
  d.context.run();
  BOOST_TEST((d.clock.now() - begin >= 3ms));
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 1U);
}

// Between filing a wait and asking for a wake-up a thread may lose its processor; and the wait may
// have ended, and a pass have found nothing, when it goes on.
BOOST_AUTO_TEST_CASE(does_not_sleep_for_a_wait_that_has_ended_meanwhile)
{
  driver_alone d;
  asio::post(d.context, [&] { d.subject.wake_at(d.in(1h)); });
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

// A request cancels the timer's wait, which makes the pass as it completes.
BOOST_AUTO_TEST_CASE(requests_while_the_timer_waits_share_one_pass)
{
  driver_alone d;
  d.is_needed = true;
  asio::post(d.context, [&] { d.subject.wake_at(d.in(1h)); });
  d.context.poll();
  BOOST_TEST(d.passes == 0);
  d.subject.wake_at(d.in(1min));
  d.subject.insist();
  d.subject.forget(d.in(1h));
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

BOOST_AUTO_TEST_CASE(requests_while_the_timer_does_not_wait_share_one_pass)
{
  driver_alone d;
  d.subject.insist();
  d.subject.wake_at(d.in(1min));
  d.subject.forget(tick{});
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
}

// The wait that another has replaced completes, too.
BOOST_AUTO_TEST_CASE(makes_no_pass_when_the_timer_is_set_anew)
{
  driver_alone d;
  d.is_needed = true;
  asio::post(d.context, [&] {
    d.subject.wake_at(d.in(1h));
    d.subject.wake_at(d.in(1min));
    d.subject.wake_at(d.in(3ms));
  });
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 1U);
}

// Whichever of the two waits completes first makes the pass, and the other none.
BOOST_AUTO_TEST_CASE(a_request_behind_a_replaced_wait_makes_one_pass)
{
  driver_alone d;
  d.is_needed = true;
  asio::post(d.context, [&] {
    d.subject.wake_at(d.in(1h));
    d.subject.wake_at(d.in(1min));
    d.subject.insist();
  });
  d.context.run_for(20s);
  BOOST_TEST(d.context.stopped());
  BOOST_TEST(d.passes == 1);
  BOOST_TEST(d.subject.wakeups() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
