// Promise 9, fair: a handler that blocks holds up no other, as long as a thread is idle.
//
// Two threads run a context. One of them is in a handler that does not return until the other
// handlers were called.
#include <array>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <latch>
#include <vector>

#include <detail/engine/posting.hpp>

#include "support/due.hpp"
#include "support/from_handler.hpp"
#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t at_once = detail::delivery::length;

/// Handlers that block until they are released, and others that are counted.
struct hostages : support::context_with_wheel {
  using context_with_wheel::context_with_wheel;

  [[nodiscard]] auto blocker()
  {
    return [this](error_code) {
      ++blocked;
      released.wait();
      --blocked;
    };
  }

  [[nodiscard]] auto other()
  {
    return [this](error_code) { ++called; };
  }

  /// Runs the context in threads. Returns whether `n` of the others were called while as many
  /// handlers as intended blocked.
  bool are_called(std::size_t n, int threads = 2, int blockers = 1)
  {
    support::running_threads run(context, threads);
    const bool right = support::eventually([&] { return called == n && blocked == blockers; });
    released.count_down();
    return right;
  }

  std::atomic<int> blocked = 0;
  std::atomic<std::size_t> called = 0;
  std::latch released{1};
};

/// A connection within a context, or between two.
struct connection {
  connection(asio::io_context& c, asio::io_context& peers) : here(c), there(peers)
  {
    tcp::acceptor acceptor(peers, {asio::ip::address_v4::loopback(), 0});
    here.connect(acceptor.local_endpoint());
    acceptor.accept(there);
  }
  explicit connection(asio::io_context& c) : connection(c, c) {}

  void write() { asio::write(there, asio::buffer("x", 1)); }

  tcp::socket here;
  tcp::socket there;
  std::array<char, 1> byte{};
};

/// Records numbers.
struct numbers {
  std::vector<int> seen;

  /// Whether they are 0 to n - 1, in that order.
  [[nodiscard]] bool ascend_to(int n) const
  {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] != static_cast<int>(i)) return false;
    }
    return seen.size() == static_cast<std::size_t>(n);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(no_hostages)

// Due.

BOOST_AUTO_TEST_CASE(a_wait_of_the_same_tick_is_completed_by_the_idle_thread)
{
  hostages h;
  const auto deadline = h.wheel.now() + 2ms;
  h.wheel.async_wait(deadline, h.blocker());
  h.wheel.async_wait(deadline, h.other());
  BOOST_TEST(h.are_called(1));
}

BOOST_AUTO_TEST_CASE(a_wait_of_a_later_tick_in_the_same_pass_is_completed_by_the_idle_thread)
{
  hostages h;
  h.wheel.async_wait(1ms, h.blocker());
  h.wheel.async_wait(3ms, h.other());
  support::spin(h.wheel, 5ms);
  BOOST_TEST(h.are_called(1));
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_started_meanwhile_is_completed_by_the_idle_thread)
{
  hostages h;
  h.wheel.async_wait(0s, [&](error_code ec) {
    h.wheel.async_wait(0s, h.other());
    h.wheel.async_wait(1ms, h.other());
    h.blocker()(ec);
  });
  BOOST_TEST(h.are_called(2));
}

BOOST_AUTO_TEST_CASE(watchdogs_of_the_same_tick_are_completed_by_the_idle_thread)
{
  hostages h;
  wheel_watchdog first(h.wheel, 2ms);
  wheel_watchdog second(h.wheel, 2ms);
  first.async_expired(h.blocker());
  second.async_expired(h.other());
  support::spin(h.wheel, 5ms);
  BOOST_TEST(h.are_called(1));
}

BOOST_AUTO_TEST_CASE(two_hundred_waits_are_completed_wherever_the_blocking_one_is)
{
  for (const int place : {0, 1, 63, 64, 100, 199}) {
    hostages h;
    const auto deadline = h.wheel.now() + 2ms;
    for (int i = 0; i < 200; ++i) {
      if (i == place) h.wheel.async_wait(deadline, h.blocker());
      h.wheel.async_wait(deadline, h.other());
    }
    support::spin(h.wheel, 4ms);
    BOOST_TEST(h.are_called(200));
  }
}

BOOST_AUTO_TEST_CASE(a_burst_is_completed_by_the_one_thread_that_does_not_block)
{
  constexpr int burst = 5000;
  hostages h;
  const auto deadline = h.wheel.now() + 2ms;
  for (int i = 0; i < burst; ++i) {
    if (i % 2000 == 1000) h.wheel.async_wait(deadline, h.blocker());
    h.wheel.async_wait(deadline, h.other());
  }
  BOOST_TEST(h.are_called(burst, 3, 2));
}

BOOST_AUTO_TEST_CASE(a_strand_that_is_blocked_holds_up_only_its_own)
{
  hostages h;
  const auto strand = asio::make_strand(h.context);
  std::atomic<int> in_strand = 0;
  const auto deadline = h.wheel.now() + 2ms;
  h.wheel.async_wait(deadline, asio::bind_executor(strand, h.blocker()));
  for (int i = 0; i < 100; ++i) {
    h.wheel.async_wait(deadline, asio::bind_executor(strand, [&](error_code) { ++in_strand; }));
    h.wheel.async_wait(deadline, h.other());
    h.wheel.async_wait(deadline, asio::bind_executor(asio::make_strand(h.context), h.other()));
  }
  BOOST_TEST(h.are_called(200));
  BOOST_TEST(in_strand == 100);
}

// Cancelled.

BOOST_AUTO_TEST_CASE(a_timer_cancelled_at_the_same_time_is_completed_by_the_idle_thread)
{
  hostages h;
  wheel_timer first(h.wheel, 1h);
  wheel_timer second(h.wheel, 1h);
  first.async_wait(h.blocker());
  second.async_wait(h.other());
  BOOST_TEST(first.cancel() == 1U);
  BOOST_TEST(second.cancel() == 1U);
  BOOST_TEST(h.are_called(1));
}

BOOST_AUTO_TEST_CASE(two_hundred_waits_of_one_cancelled_timer_are_completed_by_the_idle_thread)
{
  hostages h;
  wheel_timer timer(h.wheel, 1h);
  timer.async_wait(h.blocker());
  for (int i = 0; i < 200; ++i) timer.async_wait(h.other());
  BOOST_TEST(timer.cancel() == 201U);
  BOOST_TEST(h.are_called(200));
}

BOOST_AUTO_TEST_CASE(waits_that_cancel_all_ends_are_completed_by_the_idle_thread)
{
  hostages h;
  h.wheel.async_wait(1h, h.blocker());
  for (int i = 0; i < 200; ++i) h.wheel.async_wait(1h, h.other());
  BOOST_TEST(h.wheel.cancel_all() == 201U);
  BOOST_TEST(h.are_called(200));
}

BOOST_AUTO_TEST_CASE(waits_cancelled_while_the_handler_blocks_are_completed_by_the_idle_thread)
{
  hostages h;
  wheel_timer timer(h.wheel, 1h);
  wheel_timer late(h.wheel, 1h);
  for (int i = 0; i < 2; ++i) timer.async_wait(h.other());
  late.async_wait(h.other());
  h.wheel.async_wait(0s, [&](error_code ec) {
    timer.cancel();
    late.expires_after(1h);
    h.blocker()(ec);
  });
  BOOST_TEST(h.are_called(3));
}

BOOST_AUTO_TEST_CASE(waits_that_were_refused_are_completed_by_the_idle_thread)
{
  hostages h(support::with_limit(1));
  h.wheel.async_wait(1h, [](error_code) {});
  h.wheel.async_wait(0s, h.blocker());
  h.wheel.async_wait(0s, h.other());
  asio::post(h.context, [&] { h.wheel.cancel_all(); });
  BOOST_TEST(h.are_called(1));
}

// Operations with a deadline.

BOOST_AUTO_TEST_CASE(an_operation_that_completes_is_delivered_though_its_deadline_is_due)
{
  hostages h;
  support::manual_operation operation(h.context.get_executor());
  support::result result;
  h.wheel.async_wait(1ms, h.blocker());
  operation.async_run(cancel_after(1ms, result.recorder()));
  // Holds the other thread until the deadline is due behind the handler that blocks.
  asio::post(h.context, [&] {
    BOOST_TEST(support::eventually([&] { return h.blocked == 1; }));
    support::spin(h.wheel, 3ms);
    operation.complete({}, 7);
    if (result.succeeded(7)) ++h.called;
  });
  BOOST_TEST(h.are_called(1));
  BOOST_TEST(operation.seen.empty());
}

BOOST_AUTO_TEST_CASE(a_read_ends_though_its_deadline_is_due_behind_a_blocked_handler)
{
  // In one context the idle thread also takes the deadline, so either may come first.
  hostages h;
  connection c(h.context);
  const auto deadline = h.wheel.now() + 2ms;
  h.wheel.async_wait(deadline, [&](error_code ec) {
    c.write();
    h.blocker()(ec);
  });
  c.here.async_read_some(asio::buffer(c.byte),
                         cancel_at(deadline, [&](error_code ec, std::size_t n) {
                           BOOST_TEST((ec ? ec == asio::error::operation_aborted : n == 1U));
                           ++h.called;
                         }));
  BOOST_TEST(h.are_called(1));
}

BOOST_AUTO_TEST_CASE(a_read_that_succeeds_is_delivered_though_every_thread_of_the_wheel_is_blocked)
{
  hostages h;
  asio::io_context sockets;
  connection c(sockets);
  const auto deadline = h.wheel.now() + 2ms;
  h.wheel.async_wait(deadline, h.blocker());
  error_code error = asio::error::would_block;
  c.here.async_read_some(asio::buffer(c.byte),
                         cancel_at(h.wheel, deadline, [&](error_code ec, std::size_t) {
                           error = ec;
                           ++h.called;
                         }));
  support::spin(h.wheel, 4ms);
  c.write();
  support::running_threads reader(sockets, 1);
  BOOST_TEST(h.are_called(1, 1));
  BOOST_TEST(!error);
}

BOOST_AUTO_TEST_CASE(a_deadline_fires_though_another_handler_of_its_tick_blocks)
{
  hostages h;
  connection c(h.context);
  const auto deadline = h.wheel.now() + 2ms;
  h.wheel.async_wait(deadline, h.blocker());
  c.here.async_read_some(asio::buffer(c.byte),
                         timeout_at(deadline, [&](error_code ec, std::size_t) {
                           if (ec == asio::error::timed_out) ++h.called;
                         }));
  BOOST_TEST(h.are_called(1));
}

// Exceptions, stop() and run_one().

BOOST_AUTO_TEST_CASE(an_exception_leaves_run_and_the_next_goes_on_with_the_others_in_order)
{
  for (const int place : {0, 1, 63, 64, 199}) {
    support::context_with_wheel c;
    numbers order;
    const auto passed = c.wheel.now();
    for (int i = 0; i < 200; ++i) {
      c.wheel.async_wait(passed, [&order, i, place](error_code) {
        order.seen.push_back(i);
        if (i == place) throw support::from_handler();
      });
    }
    BOOST_CHECK_THROW(c.context.run(), support::from_handler);
    BOOST_TEST(order.ascend_to(place + 1));
    BOOST_TEST(c.wheel.pending() == static_cast<std::size_t>(199 - place));
    support::run_to_end(c.context);
    BOOST_TEST(order.ascend_to(200));
  }
}

BOOST_AUTO_TEST_CASE(an_exception_from_an_aborted_wait_leaves_run_and_the_next_goes_on_in_order)
{
  support::context_with_wheel c;
  numbers order;
  wheel_timer timer(c.wheel, 1h);
  for (int i = 0; i < 200; ++i) {
    timer.async_wait([&order, i](error_code) {
      order.seen.push_back(i);
      if (i % 50 == 0) throw support::from_handler();
    });
  }
  timer.cancel();
  BOOST_TEST(support::run_through_exceptions(c.context) == 4);
  BOOST_TEST(order.ascend_to(200));
}

BOOST_AUTO_TEST_CASE(stop_takes_effect_behind_one_function_of_at_most_64_handlers)
{
  for (const bool abort : {false, true}) {
    support::context_with_wheel c;
    numbers order;
    wheel_timer timer(c.wheel, abort ? 1h : 0h);
    for (int i = 0; i < 200; ++i) {
      timer.async_wait([&, i](error_code) {
        order.seen.push_back(i);
        if (i == 0) c.context.stop();
      });
    }
    if (abort) timer.cancel();
    c.context.run();
    BOOST_TEST(c.context.stopped());
    BOOST_TEST(order.seen.size() >= 1U);
    BOOST_TEST(order.seen.size() <= at_once);
    support::run_to_end(c.context);
    BOOST_TEST(order.ascend_to(200));
  }
}

BOOST_AUTO_TEST_CASE(run_one_calls_at_most_64_handlers)
{
  for (const bool abort : {false, true}) {
    support::context_with_wheel c;
    numbers order;
    wheel_timer timer(c.wheel, abort ? 1h : 0h);
    for (int i = 0; i < 200; ++i) timer.async_wait([&, i](error_code) { order.seen.push_back(i); });
    if (abort) timer.cancel();
    support::run_until(c.context, [&, before = std::size_t{0}]() mutable {
      BOOST_TEST(order.seen.size() - before <= at_once);
      before = order.seen.size();
      return before == 200;
    });
    BOOST_TEST(order.ascend_to(200));
  }
}

BOOST_AUTO_TEST_SUITE_END()
