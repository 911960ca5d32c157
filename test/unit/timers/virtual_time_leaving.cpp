// How virtual time ends: real time goes on, and nothing is early.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/other_thread.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

BOOST_AUTO_TEST_SUITE(leaving_virtual_time)

BOOST_AUTO_TEST_CASE(resumes_real_time)
{
  context_with_wheel c;
  {
    virtual_time time(c.wheel);
    time.advance(1h);
  }
  const auto before = std::chrono::steady_clock::now();
  const auto now = c.wheel.now();
  BOOST_TEST((now >= before));
  BOOST_TEST((now <= std::chrono::steady_clock::now()));
  outcome wait;
  c.wheel.async_wait(2ms, wait.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(makes_no_timer_early_that_was_set_to_the_time_reached)
{
  // Half a tick after the beginning of one, under which it would have been filed.
  context_with_wheel c(support::with_tick(1h));
  wheel_timer at(c.wheel);
  wheel_timer after(c.wheel);
  {
    virtual_time time(c.wheel);
    c.wheel.async_wait(1ns, [](error_code) {});
    time.advance_to_next();
    time.advance(30min);
    at.expires_at(c.wheel.now());
    after.expires_after(0ns);
  }
  virtual_time time(c.wheel);
  int ended = 0;
  for (wheel_timer* const timer : {&at, &after}) {
    timer->async_wait([&, timer](error_code ec) {
      BOOST_TEST(!ec);
      BOOST_TEST((c.wheel.now() >= timer->expiry()));
      ++ended;
    });
  }
  BOOST_TEST(time.advance_to_next());
  BOOST_TEST(ended == 2);
}

BOOST_AUTO_TEST_CASE(leaves_every_wait_its_deadline)
{
  context_with_wheel c;
  const auto start = c.wheel.now();
  std::vector<duration> completed;
  outcome hour;
  std::optional<virtual_time> time(c.wheel);
  c.wheel.async_wait(1h, hour.recorder());
  // The last of them at 40 ms, which by virtual time are nearly over when real time takes over.
  for (const auto d : {31ms, 33ms, 40ms}) {
    c.wheel.async_wait(start + d, [&, d](error_code ec) {
      BOOST_TEST(!ec);
      BOOST_TEST((c.wheel.now() >= start + d));
      completed.push_back(d);
    });
  }
  time->advance(30ms);
  time.reset();
  support::run_until(c.context, [&] { return completed.size() == 3; });
  BOOST_TEST((completed == std::vector<duration>{31ms, 33ms, 40ms}));
  BOOST_TEST(hour.pending());
}

BOOST_AUTO_TEST_CASE(after_a_long_way_lets_nothing_complete_early)
{
  context_with_wheel c;
  outcome waits;
  outcome soon;
  {
    virtual_time time(c.wheel);
    for (int i = 1; i <= 100; ++i) c.wheel.async_wait(24h + i * 37min, waits.recorder());
    time.advance(24h);
    c.wheel.async_wait(1s, waits.recorder());
  }
  c.wheel.async_wait(5ms, soon.recorder());
  c.context.restart();
  c.context.run_for(20ms);
  support::run_until(c.context, [&] { return !soon.pending(); });
  BOOST_TEST(waits.pending());
  BOOST_TEST(c.wheel.pending() == 101U);

  // They are where they were, too.
  virtual_time time(c.wheel);
  time.advance(24h + 2s);
  BOOST_TEST(waits.calls == 1);
  time.advance(100 * 37min);
  BOOST_TEST(waits.calls == 101);
}

BOOST_AUTO_TEST_CASE(keeps_what_is_due_due)
{
  context_with_wheel c;
  outcome expired;
  outcome pending;
  wheel_timer throws(c.wheel);
  wheel_timer due(c.wheel);
  wheel_timer later(c.wheel);
  {
    virtual_time time(c.wheel);
    throws.expires_after(1h);
    due.expires_at(throws.expiry());
    later.expires_after(2h);
    throws.async_wait([](error_code) { throw std::runtime_error("handler"); });
    // More than a batch takes up, so that some are in the wheel yet.
    for (int i = 0; i < 200; ++i) due.async_wait(expired.recorder());
    later.async_wait(pending.recorder());
    BOOST_CHECK_THROW(time.advance(90min), std::runtime_error);
  }
  BOOST_TEST(due.cancel_one() == 1U);
  BOOST_TEST(later.cancel() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(expired.calls == 200);
  BOOST_TEST(c.wheel.stats().expired == 200U);  // one was cancelled, and one threw
  BOOST_TEST(pending.aborted());
}

BOOST_AUTO_TEST_CASE(keeps_the_order_of_what_is_due_in_two_shards)
{
  // One of two threads that start their first wait one after the other is in another shard than
  // this thread.
  for (int round = 0; round < 2; ++round) {
    wheel_options options;
    options.shards = 2;
    context_with_wheel c(options);
    wheel_timer throws(c.wheel);
    wheel_timer passed(c.wheel);  // without an expiry
    std::vector<int> completed;
    const auto note = [&](int number) {
      return [&completed, number](error_code) { completed.push_back(number); };
    };
    support::other_thread starter;
    std::optional<virtual_time> time(c.wheel);
    throws.expires_after(1h);
    starter.run([&] {
      throws.async_wait([](error_code) { throw std::runtime_error("handler"); });
      // More than a batch takes up.
      for (int i = 0; i < 200; ++i) c.wheel.async_wait(throws.expiry(), note(i));
    });
    BOOST_CHECK_THROW(time->advance_to_next(), std::runtime_error);
    time.reset();
    starter.run([&] {
      c.wheel.async_wait(0s, note(200));
      passed.async_wait(note(201));
    });
    support::run_to_end(c.context);
    BOOST_TEST(completed.size() == 202U);
    BOOST_TEST(std::ranges::is_sorted(completed));
  }
}

BOOST_AUTO_TEST_CASE(holds_up_no_wait_that_is_over_and_was_started_meanwhile)
{
  wheel_options options;
  options.shards = 2;
  context_with_wheel c(options);
  outcome distant;
  outcome day;
  std::optional<virtual_time> time(c.wheel);
  // They take a while to go back, after the shard of one of two other threads, which is made later.
  for (int i = 0; i < 200'000; ++i) c.wheel.async_wait(36h + i * 1ms, distant.recorder());
  c.wheel.async_wait(24h, day.recorder());
  std::atomic<bool> leaving = true;
  outcome passed;
  std::atomic<int> started = 0;
  support::in_threads(3, [&](int i) {
    if (i == 0) {
      time->advance(25h);
      time.reset();
      leaving = false;
    }
    while (leaving) {
      c.wheel.async_wait(0s, passed.recorder());
      ++started;
      std::this_thread::sleep_for(1ms);
    }
  });
  support::run_until(c.context, [&] { return passed.calls == started; });
  BOOST_TEST(day.succeeded());
  BOOST_TEST(distant.pending());
}

BOOST_AUTO_TEST_CASE(calls_no_handlers)
{
  context_with_wheel c;
  outcome wait;
  {
    virtual_time time(c.wheel);
    c.wheel.async_wait(0s, wait.recorder());
  }
  BOOST_TEST(wait.pending());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(after_less_than_real_time_catches_up)
{
  context_with_wheel c;
  outcome wait;
  {
    virtual_time time(c.wheel);
    c.wheel.async_wait(2ms, wait.recorder());
    const auto due = c.wheel.now() + 5ms;
    BOOST_TEST(support::eventually([&] { return std::chrono::steady_clock::now() > due; }));
    time.advance(1ms);
    BOOST_TEST(wait.pending());
  }
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(after_the_context_has_gone_is_harmless)
{
  auto c = std::make_unique<context_with_wheel>();
  outcome wait;
  {
    virtual_time time(c->wheel);
    c->wheel.async_wait(1h, wait.recorder());
    time.advance(1s);
    c.reset();
  }
  BOOST_TEST(wait.pending());
}

BOOST_AUTO_TEST_SUITE_END()
