// A wheel in an execution context of a user's own, whose timers Asio runs in a thread of its own.
#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <tuple>

#include "support/queue_context.hpp"
#include "support/run.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

using timers = std::tuple<asio::steady_timer, wheel_timer>;

}  // namespace

BOOST_AUTO_TEST_SUITE(context_of_another_kind)

BOOST_AUTO_TEST_CASE_TEMPLATE(runs_handlers_in_its_own_thread_and_until_the_last_wait, Timer,
                              timers)
{
  support::queue_context context;
  const asio::any_io_executor ex = context.get_executor();
  const auto here = std::this_thread::get_id();
  Timer timer(ex, 5ms);
  int left = 3;
  const std::function<void(error_code)> next = [&](error_code ec) {
    BOOST_TEST(!ec);
    BOOST_TEST((std::this_thread::get_id() == here));
    if (--left == 0) return;
    timer.expires_after(5ms);
    timer.async_wait(next);
  };
  timer.async_wait(next);
  context.run();
  BOOST_TEST(left == 0);
}

BOOST_AUTO_TEST_CASE(is_left_alone_by_what_was_cancelled)
{
  support::queue_context context;
  wheel_timer timer(asio::any_io_executor(context.get_executor()), 1h);
  bool aborted = false;
  timer.async_wait([&](error_code ec) { aborted = ec == asio::error::operation_aborted; });
  timer.cancel();
  context.run();
  BOOST_TEST(aborted);
}

// Asio's strand never runs again if its executor did not take its function.
BOOST_AUTO_TEST_CASE(is_asked_again_where_it_had_no_memory)
{
  support::queue_context context;
  context.refuse_every_other();
  const asio::any_io_executor ex = context.get_executor();
  std::array<wheel_timer, 3> distant{wheel_timer(ex, 1h), wheel_timer(ex, 1h), wheel_timer(ex, 1h)};
  int aborted = 0;
  for (wheel_timer& t : distant)
    t.async_wait([&](error_code ec) { aborted += ec == asio::error::operation_aborted; });
  wheel_timer timer(ex, 1ms);
  std::size_t expired = 0;
  const std::function<void(error_code)> next = [&](error_code ec) {
    BOOST_TEST(!ec);
    if (expired == distant.size()) return;
    distant[expired++].cancel();
    timer.expires_after(1ms);
    timer.async_wait(next);
  };
  timer.async_wait(next);
  context.run();
  BOOST_TEST(expired == distant.size());
  BOOST_TEST(aborted == 3);
  BOOST_TEST(context.refused() > 3);
}

BOOST_AUTO_TEST_CASE(may_go_with_a_wait_pending)
{
  support::queue_context context;
  wheel_timer timer(asio::any_io_executor(context.get_executor()), 1h);
  timer.async_wait([](error_code) { BOOST_TEST(false, "called"); });
  // This one most likely has a pass in the queue by then.
  wheel_timer soon(asio::any_io_executor(context.get_executor()), 1ms);
  soon.async_wait([](error_code) { BOOST_TEST(false, "called"); });
  std::this_thread::sleep_for(5ms);
}

BOOST_AUTO_TEST_SUITE_END()
