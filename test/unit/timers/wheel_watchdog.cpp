// wheel_watchdog: a wait whose deadline is put off by touches.
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/due.hpp"
#include "support/earliest.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::outcome;

BOOST_AUTO_TEST_SUITE(watchdog)

BOOST_AUTO_TEST_CASE(refuses_a_timeout_of_nothing_by_name)
{
  context_with_wheel c;
  const auto names_it = [](const std::invalid_argument& e) {
    const std::string what = e.what();
    return what.find("timeout is -5ns") != what.npos && what.find("more than 0ns") != what.npos;
  };
  BOOST_CHECK_EXCEPTION(wheel_watchdog(c.wheel, -5ns), std::invalid_argument, names_it);
  BOOST_CHECK_THROW(wheel_watchdog(c.wheel, 0ns), std::invalid_argument);
  wheel_watchdog dog(c.wheel, 1h);
  BOOST_CHECK_EXCEPTION(dog.set_timeout(-5ns), std::invalid_argument, names_it);
  BOOST_TEST((dog.timeout() == 1h));
}

BOOST_AUTO_TEST_CASE(keeps_nothing_running_unless_somebody_waits)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, 1ms);
  dog.touch();
  BOOST_TEST(c.context.run() == 0U);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(takes_a_timeout_after_its_context_is_gone)
{
  outcome wait;
  std::optional<wheel_watchdog> dog;
  {
    context_with_wheel c;
    dog.emplace(c.wheel, 1h);
    dog->async_expired(wait.recorder());
  }
  dog->set_timeout(1ms);
  BOOST_TEST((dog->timeout() == 1ms));
  BOOST_TEST(wait.pending());
}

BOOST_AUTO_TEST_CASE(takes_its_timeout_along_when_it_moves)
{
  context_with_wheel c;
  std::array<outcome, 3> waits;
  wheel_watchdog first(c.wheel, 1h);
  first.async_expired(waits[0].recorder());
  first.async_expired(waits[1].recorder());
  wheel_watchdog second(std::move(first));
  BOOST_TEST(first.cancel() == 0U);
  wheel_watchdog third(c.wheel, 1h);
  third.async_expired(waits[2].recorder());
  third = std::move(second);
  third.set_timeout(2ms);
  support::run_to_end(c.context);
  BOOST_TEST(waits[0].succeeded());
  BOOST_TEST(waits[1].succeeded());
  BOOST_TEST(waits[2].aborted());
  BOOST_TEST((third.timeout() == 2ms));
  // What is left behind still works.
  first.set_timeout(1ms);
  outcome again;
  first.async_expired(again.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(again.succeeded());
}

BOOST_AUTO_TEST_CASE(lives_in_a_container_that_moves_it)
{
  context_with_wheel c;
  std::deque<outcome> waits;
  std::vector<wheel_watchdog> dogs;
  for (int i = 0; i < 100; ++i) {
    dogs.emplace_back(c.wheel, 3ms).async_expired(waits.emplace_back().recorder());
  }
  dogs.erase(dogs.begin(), dogs.begin() + 50);
  support::run_to_end(c.context);
  for (std::size_t i = 0; i < 50; ++i) BOOST_TEST(waits[i].aborted());
  for (std::size_t i = 50; i < 100; ++i) BOOST_TEST(waits[i].succeeded());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(watchdog_expiry)

BOOST_AUTO_TEST_CASE(comes_a_timeout_after_the_last_touch_and_never_before)
{
  for (const auto clock : {clock_source::precise, clock_source::coarse}) {
    wheel_options options;
    options.clock = clock;
    context_with_wheel c(options);
    wheel_watchdog dog(c.wheel, 5ms);
    auto last = c.wheel.now();
    std::optional<duration> untouched;
    dog.async_expired([&](error_code ec) {
      BOOST_TEST(!ec);
      untouched = c.wheel.now() - last;
    });
    // Well beyond the deadline that the wait was filed under.
    asio::post(c.context, [&] {
      support::spin(c.wheel, 20ms, [&] {
        last = support::earliest(c.wheel, 0ms);
        dog.touch();
      });
    });
    support::run_to_end(c.context);
    BOOST_TEST((untouched.value() >= 5ms));
  }
}

BOOST_AUTO_TEST_CASE(counts_from_the_construction)
{
  context_with_wheel c;
  const auto made = c.wheel.now();
  wheel_watchdog dog(c.wheel, 4ms);
  support::spin(c.wheel, 2ms);
  dog.async_expired([&](error_code) { BOOST_TEST((c.wheel.now() - made >= 4ms)); });
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(completes_every_wait)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, 3ms);
  std::array<outcome, 100> waits;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    // Some are filed under a later deadline than others.
    if (i % 10 == 0) support::spin(c.wheel, 300us, [&] { dog.touch(); });
    dog.async_expired(waits[i].recorder());
  }
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(stays_until_a_touch_revives)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, 2ms);
  support::spin(c.wheel, 3ms);
  for (int i = 0; i < 2; ++i) {
    outcome wait;
    dog.async_expired(wait.recorder());
    BOOST_TEST(wait.pending());
    support::run_to_end(c.context);
    BOOST_TEST(wait.succeeded());
  }
  const auto touched = c.wheel.now();
  dog.touch();
  outcome wait;
  dog.async_expired(wait.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST((c.wheel.now() - touched >= 2ms));
}

BOOST_AUTO_TEST_CASE(is_put_off_by_a_touch_when_it_is_due)
{
  context_with_wheel c;
  outcome wait;
  std::optional<wheel_watchdog> dog;
  support::act_while_due(
    c,
    [&] {
      dog.emplace(c.wheel, 1ms);
      dog->async_expired(wait.recorder());
    },
    [&] {
      dog->set_timeout(1h);
      asio::post(c.context, [&] {
        asio::post(c.context, [&] {
          BOOST_TEST(wait.pending());
          BOOST_TEST(c.wheel.pending() == 1U);
          dog->set_timeout(1ms);
        });
      });
    });
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(is_put_off_by_a_touch_on_its_way_to_another_context)
{
  context_with_wheel c;
  virtual_time vt(c.wheel);
  asio::io_context elsewhere;
  outcome wait;
  wheel_watchdog dog(c.wheel, 1ms);
  dog.async_expired(asio::bind_executor(elsewhere, wait.recorder()));
  vt.advance(2ms);
  dog.touch();
  BOOST_TEST(elsewhere.poll() == 1U);
  BOOST_TEST(wait.pending());
  BOOST_TEST(c.wheel.pending() == 1U);
  vt.advance(2ms);
  elsewhere.restart();
  elsewhere.poll();
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(counts_as_one_wait_however_often_it_is_put_off)
{
  context_with_wheel c(support::with_limit(1));
  wheel_watchdog dog(c.wheel, 2ms);
  outcome wait;
  outcome refused;
  dog.async_expired(wait.recorder());
  dog.async_expired(refused.recorder());
  for (int i = 0; i < 5; ++i) {
    support::spin(c.wheel, 3ms, [&] { dog.touch(); });
    c.context.poll();
  }
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST((refused.error == wheel_errc::too_many_pending));
  const auto stats = c.wheel.stats();
  BOOST_TEST(stats.started == 1U);
  BOOST_TEST(stats.expired == 1U);
  BOOST_TEST(stats.pending == 0U);
  dog.touch();
  dog.async_expired(wait.recorder());
  BOOST_TEST(c.wheel.pending() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(watchdog_timeout)

BOOST_AUTO_TEST_CASE(that_gets_shorter_takes_effect_at_once)
{
  for (const duration was : {duration(1h), duration::max()}) {
    context_with_wheel c;
    const auto made = c.wheel.now();
    wheel_watchdog dog(c.wheel, was);
    std::array<outcome, 3> waits;
    for (auto& wait : waits) dog.async_expired(wait.recorder());
    c.context.poll();
    dog.set_timeout(3ms);
    BOOST_TEST((dog.timeout() == 3ms));
    support::run_to_end(c.context);
    for (const auto& wait : waits) BOOST_TEST(wait.succeeded());
    BOOST_TEST((c.wheel.now() - made >= 3ms));
  }
}

BOOST_AUTO_TEST_CASE(that_is_over_already_completes_from_the_loop)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, 1h);
  outcome wait;
  dog.async_expired(wait.recorder());
  support::spin(c.wheel, 2ms);
  dog.set_timeout(1ns);
  BOOST_TEST(wait.pending());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(that_gets_longer_counts_from_the_last_touch)
{
  context_with_wheel c;
  const auto made = c.wheel.now();
  wheel_watchdog dog(c.wheel, 5ms);
  dog.async_expired([&](error_code) { BOOST_TEST((c.wheel.now() - made >= 12ms)); });
  dog.set_timeout(12ms);
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(of_max_never_ends_and_can_be_cancelled)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, 1ms);
  outcome wait;
  dog.async_expired(wait.recorder());
  dog.set_timeout(duration::max());
  c.context.run_for(5ms);
  BOOST_TEST(wait.pending());
  BOOST_TEST(dog.cancel() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(watchdog_wait)

BOOST_AUTO_TEST_CASE(can_be_cancelled_by_its_slot_after_it_was_put_off)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, 1ms);
  asio::cancellation_signal signal;
  outcome wait;
  dog.async_expired(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  dog.set_timeout(1h);
  support::spin(c.wheel, 3ms);
  c.context.run_for(3ms);
  BOOST_TEST(wait.pending());
  signal.emit(cancellation_type::total);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(is_woken_by_another_thread_that_shortens_the_timeout)
{
  context_with_wheel c;
  wheel_watchdog dog(c.context, 1h);
  outcome wait;
  dog.async_expired(wait.recorder());
  std::thread other([&] { dog.set_timeout(1ms); });
  support::run_to_end(c.context);
  other.join();
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(is_one_of_thousands_that_are_put_off_by_several_threads)
{
  context_with_wheel c;
  std::deque<wheel_watchdog> dogs;
  std::deque<outcome> waits;
  for (int i = 0; i < 5000; ++i) {
    dogs.emplace_back(c.wheel, 20ms).async_expired(waits.emplace_back().recorder());
  }
  const auto end = c.wheel.now() + 30ms;
  std::thread runs([&] { support::run_to_end(c.context); });
  support::in_threads(2, [&](int t) {
    for (auto i = static_cast<std::size_t>(t); c.wheel.now() < end; i += 2) {
      dogs[i % dogs.size()].touch();
    }
  });
  runs.join();
  for (const auto& wait : waits) BOOST_TEST(wait.succeeded());
  BOOST_TEST(c.wheel.stats().started == waits.size());
}

BOOST_AUTO_TEST_SUITE_END()
