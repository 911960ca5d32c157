// A timer's executor, which is stored only if it is not the wheel's.
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <utility>

#include <detail/engine/core.hpp>

#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;
using support::context_with_wheel;

static_assert(sizeof(void*) != 8 || sizeof(wheel_timer) == 64, "a cache line");

BOOST_AUTO_TEST_SUITE(timer_executor)

BOOST_AUTO_TEST_CASE(is_the_wheels_where_none_is_given)
{
  context_with_wheel c;
  const wheel_timer timer(c.wheel);
  BOOST_TEST((&timer.get_executor() == &core_of(c.wheel).executor));
}

BOOST_AUTO_TEST_CASE(of_another_kind_stays_with_both_after_a_move)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  wheel_timer from(c.wheel, strand);
  wheel_timer to(std::move(from));
  BOOST_TEST((to.get_executor() == asio::any_io_executor(strand)));
  BOOST_TEST((from.get_executor() == asio::any_io_executor(strand)));

  bool on_strand = false;
  from.expires_after(1ms);
  from.async_wait([&](error_code) { on_strand = strand.running_in_this_thread(); });
  support::run_to_end(c.context);
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE(goes_along_with_an_assignment)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  wheel_timer timer(c.wheel);
  timer = wheel_timer(c.wheel, strand);
  BOOST_TEST((timer.get_executor() == asio::any_io_executor(strand)));
  timer = wheel_timer(c.wheel);
  BOOST_TEST((timer.get_executor() == c.wheel.get_executor()));
}

BOOST_AUTO_TEST_CASE(is_converted_when_a_typed_timer_is_moved)
{
  context_with_wheel c;
  basic_wheel_timer<asio::io_context::executor_type> typed(c.context, 1h);
  wheel_timer erased(std::move(typed));
  BOOST_TEST((erased.get_executor() == asio::any_io_executor(c.context.get_executor())));
  BOOST_TEST((erased.expiry() > wheel_timer::clock_type::now()));
}

BOOST_AUTO_TEST_CASE(of_another_context_is_where_the_handler_runs)
{
  context_with_wheel c;
  asio::thread_pool pool(1);
  bool on_pool = false;
  wheel_timer timer(c.wheel, pool.get_executor());
  timer.expires_after(1ms);
  timer.async_wait([&](error_code) { on_pool = pool.get_executor().running_in_this_thread(); });
  support::run_to_end(c.context);
  pool.join();
  BOOST_TEST(on_pool);
}

BOOST_AUTO_TEST_SUITE_END()
