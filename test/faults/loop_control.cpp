// Fault: the loop is stopped, restarted and run in every possible way, with waits pending.
//
// Nothing is lost or early. run_one() and stop() count the functions that the wheel posts, each of
// which completes up to 64 waits.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <detail/engine/posting.hpp>
#include <thread>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

namespace {

constexpr std::size_t at_once = detail::delivery::length;
constexpr std::size_t many = 10 * at_once;

/// Waits with all kinds of ends: due one after the other, due at once, and aborted.
struct mixed_waits : context_with_wheel {
  mixed_waits()
  {
    for (std::size_t i = 0; i < many; ++i) {
      const auto deadline = wheel.now() + i * 20us;
      wheel.async_wait(deadline, [this, deadline](error_code ec) {
        ++ended;
        if (ec || wheel.now() < deadline) ++wrong;
      });
      timer.async_wait([this](error_code ec) {
        ++ended;
        if (ec != asio::error::operation_aborted) ++wrong;
      });
    }
    wheel.async_wait(5ms, [this](error_code) { timer.cancel(); });
  }

  [[nodiscard]] bool done() const { return ended == 2 * many; }

  wheel_timer timer{wheel, 1h};
  std::size_t ended = 0;
  std::size_t wrong = 0;
};

/// Runs the waits to their end by calls of `run`, and restarts after each.
template <class Run>
void run_in_pieces(Run run)
{
  mixed_waits waits;
  const auto limit = std::chrono::steady_clock::now() + support::patience;
  while (!waits.done() && std::chrono::steady_clock::now() < limit) {
    run(waits.context);
    waits.context.restart();
  }
  BOOST_TEST(waits.done());
  support::run_to_end(waits.context);
  BOOST_TEST(waits.wrong == 0U);
  BOOST_TEST(waits.wheel.pending() == 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loop_control)

BOOST_AUTO_TEST_CASE(run_completes_all)
{
  run_in_pieces([](asio::io_context& c) { c.run(); });
}

BOOST_AUTO_TEST_CASE(run_one_completes_all)
{
  run_in_pieces([](asio::io_context& c) { c.run_one(); });
}

BOOST_AUTO_TEST_CASE(poll_completes_all_and_never_blocks)
{
  run_in_pieces([](asio::io_context& c) { c.poll(); });
}

BOOST_AUTO_TEST_CASE(poll_one_completes_all)
{
  run_in_pieces([](asio::io_context& c) { c.poll_one(); });
}

BOOST_AUTO_TEST_CASE(run_for_and_its_kin_complete_all)
{
  run_in_pieces([](asio::io_context& c) { c.run_for(1ms); });
  run_in_pieces([](asio::io_context& c) { c.run_one_for(100us); });
  run_in_pieces([](asio::io_context& c) { c.run_until(std::chrono::steady_clock::now() + 100us); });
}

BOOST_AUTO_TEST_CASE(poll_run_one_for_stop_and_run_for_in_turn_complete_all)
{
  int turn = 0;
  run_in_pieces([&turn](asio::io_context& c) {
    switch (turn++ % 4) {
      case 0: c.poll(); break;
      case 1: c.run_one_for(1ms); break;
      case 2: c.stop(); break;
      default: c.run_for(200us);
    }
  });
}

BOOST_AUTO_TEST_CASE(poll_completes_nothing_that_is_not_due)
{
  context_with_wheel c;
  outcome due;
  outcome later;
  c.wheel.async_wait(0s, due.recorder());
  c.wheel.async_wait(1h, later.recorder());
  c.context.poll();
  BOOST_TEST(due.succeeded());
  BOOST_TEST(later.pending());
  BOOST_TEST(!c.context.stopped());
}

BOOST_AUTO_TEST_CASE(run_one_completes_a_batch_at_the_most)
{
  context_with_wheel c;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < many; ++i) c.wheel.async_wait(0s, [&](error_code) { ++ended; });
  while (ended < many) {
    const std::size_t before = ended;
    BOOST_REQUIRE(c.context.run_one() == 1U);
    BOOST_TEST(ended - before <= at_once);
  }
}

BOOST_AUTO_TEST_CASE(stop_in_a_handler_lets_the_rest_of_its_batch_complete_at_the_most)
{
  context_with_wheel c;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < many; ++i) {
    c.wheel.async_wait(0s, [&](error_code) {
      if (++ended % 100 == 0) c.context.stop();
    });
  }
  std::size_t stops = 0;
  while (ended < many) {
    const std::size_t before = ended;
    c.context.run();
    BOOST_TEST(ended - before <= 100 + at_once);
    stops += c.context.stopped();
    c.context.restart();
  }
  BOOST_TEST(stops >= many / 100);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(a_stopped_loop_still_starts_and_cancels)
{
  context_with_wheel c;
  outcome started;
  outcome cancelled;
  wheel_timer timer(c.wheel, 1h);
  timer.async_wait(cancelled.recorder());
  c.context.poll();
  c.context.stop();
  BOOST_TEST(timer.cancel() == 1U);
  const auto deadline = c.wheel.now() + 2ms;
  c.wheel.async_wait(deadline, started.recorder());
  BOOST_TEST(c.context.run() == 0U);
  BOOST_TEST(c.wheel.pending() == 1U);
  c.context.restart();
  support::run_to_end(c.context);
  BOOST_TEST(cancelled.aborted());
  BOOST_TEST(started.succeeded());
  BOOST_TEST((c.wheel.now() >= deadline));
}

BOOST_AUTO_TEST_CASE(a_loop_stopped_while_it_sleeps_for_a_wait_wakes_for_it_when_it_runs_again)
{
  context_with_wheel c;
  outcome wait;
  const auto deadline = c.wheel.now() + 10ms;
  c.wheel.async_wait(deadline, wait.recorder());
  std::thread other([&] { c.context.stop(); });
  c.context.run();
  other.join();
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST((c.wheel.now() >= deadline));
}

BOOST_AUTO_TEST_CASE(restart_without_a_stop_changes_nothing)
{
  context_with_wheel c;
  outcome wait;
  c.wheel.async_wait(2ms, wait.recorder());
  for (int i = 0; i < 10; ++i) {
    c.context.restart();
    c.context.poll();
  }
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_SUITE_END()
