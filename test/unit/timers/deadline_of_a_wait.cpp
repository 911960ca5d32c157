// A deadline on an operation that is itself a wait of the wheel, as that of a timer or of a
// simulated stream: if somebody else has ended the operation before, the deadline has not.
#include <algorithm>
#include <array>
#include <asio_wheel.hpp>
#include <asio_wheel/simulated_stream.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "support/error_of_closing.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/socket_pair.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;
using support::wheel_in_virtual_time;

namespace {

timeout_policy& policy()
{
  static timeout_policy p("wait", 10ms);
  return p;
}

/// One of everything that waits on the wheel, for an hour or for ever.
struct waiting {
  explicit waiting(wheel_timer_service& wheel)
    : timer(wheel, 1h),
      one_of_two(wheel, 1h),
      dog(wheel, 1h),
      interval(wheel, wheel.now() + 1h, 1h),
      ends(simulated_pair(wheel))
  {}

  wheel_timer timer;
  wheel_timer one_of_two;
  wheel_watchdog dog;
  wheel_interval interval;
  std::pair<simulated_stream, simulated_stream> ends;
};

struct scene {
  explicit scene(wheel_timer_service& wheel) : objects(std::in_place, wheel)
  {
    const auto token = [this](std::size_t i) {
      return timeout_after(policy(), ends.at(i).recorder());
    };
    objects->timer.async_wait(token(0));
    objects->one_of_two.async_wait(token(1));
    objects->dog.async_expired(token(2));
    objects->interval.async_tick(token(3));
    objects->ends.first.async_read_some(asio::buffer(byte), token(4));
    wheel.async_wait(1h, timeout_after(policy(), asio::bind_cancellation_slot(
                                                   signal.slot(), ends.at(5).recorder())));
  }

  void cancel()
  {
    objects->timer.cancel();
    BOOST_TEST(objects->one_of_two.cancel_one() == 1U);
    objects->dog.cancel();
    objects->interval.cancel();
    objects->ends.first.cancel();
    signal.emit(asio::cancellation_type::terminal);
  }

  void destroy()
  {
    objects.reset();
    signal.emit(asio::cancellation_type::terminal);
  }

  std::array<outcome, 6> ends;
  std::array<char, 1> byte{};
  asio::cancellation_signal signal;
  std::optional<waiting> objects;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(deadline_of_a_wait)

BOOST_AUTO_TEST_CASE(has_not_ended_what_was_ended_in_its_tick)
{
  for (const auto end : {&scene::cancel, &scene::destroy}) {
    wheel_in_virtual_time w;
    const auto before = policy().stats();
    std::optional<scene> s;
    w.wheel.async_wait(10ms, [&](error_code) { ((*s).*end)(); });
    s.emplace(w.wheel);
    w.time.advance(10ms);
    for (const outcome& o : s->ends) BOOST_TEST(o.aborted());
    BOOST_TEST(policy().stats().met - before.met == 6U);
    BOOST_TEST(policy().stats().expired == before.expired);
  }
}

BOOST_AUTO_TEST_CASE(has_not_ended_what_was_ended_while_both_were_overdue)
{
  for (const auto end : {&scene::cancel, &scene::destroy}) {
    context_with_wheel c;
    std::optional<scene> s;
    c.wheel.async_wait(5ms, [](error_code) { std::this_thread::sleep_for(20ms); });
    c.wheel.async_wait(7ms, [&](error_code) { ((*s).*end)(); });
    s.emplace(c.wheel);
    support::run_to_end(c.context);
    for (const outcome& o : s->ends) BOOST_TEST(o.aborted());
  }
}

BOOST_AUTO_TEST_CASE(has_ended_none_of_many_that_were_woken_in_its_tick)
{
  wheel_in_virtual_time w;
  wheel_timer timer(w.wheel, 1h);
  std::array<outcome, 5000> ends;
  w.wheel.async_wait(10ms, [&](error_code) { BOOST_TEST(timer.cancel() == ends.size()); });
  for (outcome& o : ends) timer.async_wait(timeout_after(10ms, o.recorder()));
  w.time.advance(10ms);
  BOOST_TEST(std::ranges::all_of(ends, &outcome::aborted));
}

BOOST_AUTO_TEST_CASE(has_ended_what_nobody_else_has)
{
  wheel_in_virtual_time w;
  scene s(w.wheel);
  w.time.advance(10ms);
  for (const outcome& o : s.ends) BOOST_TEST(o.error == asio::error::timed_out);
}

// The deadline gives way to waits that have ended, but not for ever.
BOOST_AUTO_TEST_CASE(comes_beside_handlers_that_end_waits_without_end)
{
  wheel_in_virtual_time w;
  wheel_timer timer(w.wheel, 1h);
  outcome timed;
  int cancels = 0;
  const std::function<void(error_code)> cancel_another = [&](error_code) {
    if (!timed.pending() || ++cancels == 100'000) return;
    timer.async_wait(cancel_another);
    timer.cancel();
  };
  asio::steady_timer never(w.context, asio::steady_timer::time_point::max());
  w.wheel.async_wait(10ms, cancel_another);
  never.async_wait(timeout_after(w.wheel, 10ms, timed.recorder()));
  w.time.advance(10ms);
  BOOST_TEST(timed.error == asio::error::timed_out);
  BOOST_TEST(cancels < 100'000);
}

BOOST_AUTO_TEST_CASE(does_not_reach_an_object_that_the_handler_of_an_ended_wait_destroys)
{
  wheel_in_virtual_time w;
  std::optional<support::pair_socket> one(std::in_place, w.context);
  support::pair_socket other(w.context);
  support::connect_pair(*one, other);
  wheel_timer timer(w.wheel, 1h);
  std::array<char, 1> byte{};
  outcome read;
  timer.async_wait([&](error_code) { one.reset(); });
  w.wheel.async_wait(10ms, [&](error_code) { timer.cancel(); });
  one->async_read_some(asio::buffer(byte), timeout_after(10ms, read.recorder()));
  w.time.advance(10ms);
  support::run_until(w.context, [&] { return !read.pending(); });  // on Windows, a little later
  BOOST_TEST((read.calls == 1 && read.error == support::error_of_closing()));
}

BOOST_AUTO_TEST_SUITE_END()
