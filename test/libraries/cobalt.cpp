// Boost.Cobalt: its coroutines await the library's operations, with and without a deadline.
#include <asio_wheel.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/cobalt/op.hpp>
#include <boost/cobalt/race.hpp>
#include <boost/cobalt/spawn.hpp>
#include <boost/cobalt/task.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>

#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
namespace cobalt = boost::cobalt;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

struct story : support::context_with_wheel {
  /// Runs the task to its end, and rethrows its exception.
  void run(cobalt::task<void> task)
  {
    bool ended = false;
    std::exception_ptr thrown;
    cobalt::spawn(context.get_executor(), std::move(task), [&](std::exception_ptr e) {
      ended = true;
      thrown = e;
    });
    support::run_to_end(context);
    BOOST_REQUIRE(ended);
    if (thrown) std::rethrow_exception(thrown);
    BOOST_TEST(wheel.stats().pending == 0U);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cobalt_tasks)

cobalt::task<void> wait(wheel_timer_service& wheel)
{
  co_await wheel.async_wait(1ms, cobalt::use_op);
}

BOOST_AUTO_TEST_CASE(a_task_awaits_a_wait)
{
  story s;
  s.run(wait(s.wheel));
}

cobalt::task<void> be_cut_short(asio::io_context& context)
{
  asio::steady_timer timer(context, 1h);
  co_await timer.async_wait(timeout_after(1ms, cobalt::use_op));
}

BOOST_AUTO_TEST_CASE(timeout_after_throws_in_a_task)
{
  story s;
  BOOST_CHECK_EXCEPTION(s.run(be_cut_short(s.context)), system_error,
                        [](const system_error& e) { return e.code() == asio::error::timed_out; });
}

cobalt::task<std::size_t> race_two_waits(wheel_timer_service& wheel)
{
  co_return co_await cobalt::race(wheel.async_wait(1h, cobalt::use_op),
                                  wheel.async_wait(1ms, cobalt::use_op));
}

cobalt::task<void> win(wheel_timer_service& wheel, std::size_t& winner)
{
  winner = co_await race_two_waits(wheel);
}

BOOST_AUTO_TEST_CASE(a_race_cancels_the_wait_that_lost)
{
  story s;
  std::size_t winner = 0;
  s.run(win(s.wheel, winner));
  BOOST_TEST(winner == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
