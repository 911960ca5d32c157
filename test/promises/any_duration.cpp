// Promise 11, any time value: every function that takes a delay or a deadline takes it in any unit;
// the longest of each type is never, and the shortest is at once.
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ratio>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "support/outcome.hpp"
#include "support/tcp_ends.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using std::chrono::duration;
using support::outcome;
using support::wheel_in_virtual_time;
using steady = std::chrono::steady_clock;

namespace {

using all = std::tuple<std::chrono::hours, std::chrono::minutes, std::chrono::seconds,
                       std::chrono::milliseconds, std::chrono::microseconds,
                       std::chrono::nanoseconds, duration<std::int64_t, std::pico>, duration<int>,
                       duration<std::int16_t>, duration<std::int64_t, std::ratio<1, 3>>,
                       std::chrono::years, duration<float>, duration<double>, duration<long double>,
                       duration<double, std::nano>, duration<float, std::ratio<3600>>>;

constexpr auto never = wheel_timer_service::duration::max();

// Handlers of one type each, so that the library is compiled for them once, and not for each type
// of duration.
auto as_task(outcome& o)
{
  return [recorder = o.recorder()]() mutable { recorder({}); };
}
auto as_tick_handler(outcome& o)
{
  return [recorder = o.recorder()](error_code ec, auto) mutable { recorder(ec); };
}
auto as_event_handler(outcome& o)
{
  return [recorder = o.recorder()](error_code ec, heartbeat_event) mutable { recorder(ec); };
}
auto as_read_handler(bool& has_ended)
{
  return [&has_ended](error_code, std::size_t) { has_ended = true; };
}

/// A wheel on which `start(wheel, outcome)` starts something, which may keep an object.
template <class Start>
void check_never(Start start)
{
  wheel_in_virtual_time c;
  outcome o;
  [[maybe_unused]] const auto object = start(c.wheel, o);
  c.time.advance(24h * 365 * 20);
  BOOST_TEST(o.pending());
}

template <class Start>
void check_at_once(Start start)
{
  wheel_in_virtual_time c;
  outcome o;
  [[maybe_unused]] const auto object = start(c.wheel, o);
  c.time.advance(0ns);
  BOOST_TEST(o.calls == 1);
}

template <class Deadline>
auto limit(Deadline deadline)
{
  return [deadline](wheel_timer_service& w, outcome& o) {
    auto op = std::make_unique<asio::steady_timer>(w.get_executor(), steady::time_point::max());
    op->async_wait(deadline(o.recorder()));
    return op;
  };
}

/// Calls `check` with a start by each function that takes a delay, or a deadline.
template <class Delay, class Check>
void with_each_start(Delay d, Check check)
{
  check([d](wheel_timer_service& w, outcome& o) {
    w.async_wait(d, o.recorder());
    return 0;
  });
  check([d](wheel_timer_service& w, outcome& o) {
    wheel_timer t(w, d);
    t.async_wait(o.recorder());
    return t;
  });
  check([d](wheel_timer_service& w, outcome& o) {
    wheel_timer t(w);
    t.expires_after(d);
    t.async_wait(o.recorder());
    return t;
  });
  check([d](wheel_timer_service& w, outcome& o) {
    auto tasks = std::make_unique<keyed_scheduler<int>>(w);
    tasks->run_after(1, d, as_task(o));
    return tasks;
  });
  check([d](wheel_timer_service& w, outcome& o) {
    auto tasks = std::make_unique<keyed_scheduler<int>>(w);
    tasks->run_after(1, 1h, as_task(o));
    tasks->reschedule(1, d);
    return tasks;
  });
  check(limit([d](auto token) { return cancel_after(d, token); }));
  check(limit([d](auto token) { return timeout_after(d, token); }));
}

template <class Deadline, class Check>
void with_each_start_at(Deadline t, Check check)
{
  check([t](wheel_timer_service& w, outcome& o) {
    w.async_wait(t, o.recorder());
    return 0;
  });
  check([t](wheel_timer_service& w, outcome& o) {
    wheel_timer timer(w, t);
    timer.expires_at(t);
    timer.async_wait(o.recorder());
    return timer;
  });
  check(limit([t](auto token) { return cancel_at(t, token); }));
  check(limit([t](auto token) { return timeout_at(t, token); }));
}

/// What an exception says that `f` throws.
template <class Function>
std::string complaint(Function f)
{
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(any_duration)

BOOST_AUTO_TEST_CASE_TEMPLATE(the_longest_delay_of_any_type_is_never, Delay, all)
{
  with_each_start(Delay::max(), [](auto start) { check_never(start); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_shortest_delay_of_any_type_is_at_once, Delay, all)
{
  with_each_start(Delay::min(), [](auto start) { check_at_once(start); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_last_time_point_of_any_type_is_never, Delay, all)
{
  using point = std::chrono::time_point<steady, Delay>;
  with_each_start_at(point::max(), [](auto start) { check_never(start); });
  with_each_start_at(point::min(), [](auto start) { check_at_once(start); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_longest_timeout_of_any_type_expires_never, Delay, all)
{
  check_never([](wheel_timer_service& w, outcome& o) {
    wheel_watchdog dog(w, Delay::max());
    BOOST_TEST((dog.timeout() == never));
    dog.set_timeout(1s);
    dog.set_timeout(Delay::max());
    BOOST_TEST((dog.timeout() == never));
    dog.async_expired(o.recorder());
    return dog;
  });
  check_never([](wheel_timer_service& w, outcome& o) {
    wheel_watchdog dog(w, idle_window{1s, Delay::max()});
    dog.async_expired(o.recorder());
    return dog;
  });
  check_never([](wheel_timer_service& w, outcome& o) {
    heartbeat beat(w, {.interval = Delay::max()});
    beat.async_next(as_event_handler(o));
    return beat;
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_longest_period_of_any_type_has_no_second_tick, Delay, all)
{
  check_never([](wheel_timer_service& w, outcome& o) {
    auto ticks = std::make_unique<wheel_interval>(w, Delay::max());
    BOOST_TEST((ticks->period() == never));
    ticks->reset();  // the next tick is a period from now
    ticks->async_tick(as_tick_handler(o));
    return ticks;
  });
  check_never([](wheel_timer_service& w, outcome& o) {
    auto tasks = std::make_unique<keyed_scheduler<int>>(w);
    tasks->run_every(1, Delay::max(), as_task(o));
    return tasks;
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timeout_of_any_type_may_not_be_negative, Delay, all)
{
  wheel_in_virtual_time c;
  BOOST_TEST(complaint([&] { wheel_watchdog dog(c.wheel, Delay::min()); }) != "");
  BOOST_TEST(complaint([&] { heartbeat beat(c.wheel, {.interval = Delay::min()}); }) != "");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_longest_limit_of_a_stream_is_none, Delay, all)
{
  support::tcp_ends c;
  c.local.set_limits({.read_idle = Delay::max(), .total = Delay::max()});
  c.local.expires_after(Delay::max());
  char byte = 0;
  bool has_ended = false;
  c.local.async_read_some(asio::buffer(&byte, 1), as_read_handler(has_ended));
  c.time.advance(24h * 365);
  BOOST_TEST(!has_ended);
  c.local.cancel();
  c.time.advance(0ns);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(virtual_time_advances_to_the_end_by_the_longest_delay, Delay, all)
{
  wheel_in_virtual_time c;
  outcome o;
  c.wheel.async_wait(24h * 365, o.recorder());
  c.time.advance_until_idle(Delay::max());
  BOOST_TEST(o.succeeded());
}

BOOST_AUTO_TEST_CASE(parts_of_a_nanosecond_are_rounded_up)
{
  wheel_in_virtual_time c;
  const auto timeout = [&](auto d) { return wheel_watchdog(c.wheel, d).timeout(); };
  BOOST_TEST((timeout(duration<int, std::pico>(1)) == 1ns));
  BOOST_TEST((timeout(duration<int, std::pico>(1001)) == 2ns));
  BOOST_TEST((timeout(duration<int, std::ratio<1, 3>>(1)) == 333'333'334ns));
  BOOST_TEST((timeout(duration<double>(1e-10)) == 1ns));
  BOOST_TEST((timeout(duration<double>(1.5)) == 1500ms));
  BOOST_TEST((timeout(duration<std::uint64_t>(7)) == 7s));
  BOOST_TEST((timeout(std::chrono::seconds(9'223'372'036)) == 9'223'372'036s));
  BOOST_TEST((timeout(std::chrono::seconds(9'223'372'037)) == never));
}

BOOST_AUTO_TEST_CASE(infinity_is_never_and_not_a_number_is_at_once)
{
  using real = std::numeric_limits<double>;
  with_each_start(duration<double>(real::infinity()), [](auto start) { check_never(start); });
  with_each_start(duration<double>(-real::infinity()), [](auto start) { check_at_once(start); });
  with_each_start(duration<double>(real::quiet_NaN()), [](auto start) { check_at_once(start); });
}

BOOST_AUTO_TEST_CASE(a_tick_that_is_too_long_is_refused_whatever_its_type)
{
  asio::io_context context;
  const auto refusal = complaint([&] { make_wheel(context, {.tick = std::chrono::hours::max()}); });
  BOOST_TEST(refusal.find("from 1us to 24h") != refusal.npos);
  BOOST_TEST(refusal.find("is 9223372036854775807ns") != refusal.npos);
}

BOOST_AUTO_TEST_SUITE_END()
