// A timer's executor, which is stored only if it is not the wheel's, and a handler's.
#include <asio_wheel.hpp>
#include <boost/asio/io_context.hpp>
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

namespace {

/// Asio takes what get_executor() returns as it is.
struct with_reference {
  using executor_type = asio::strand<asio::io_context::executor_type>;
  [[nodiscard]] const executor_type& get_executor() const noexcept { return ex; }

  template <class... Result>
  void operator()(error_code, const Result&...) const
  {
    *there += ex.running_in_this_thread() ? 1 : 0;
  }

  executor_type ex;
  int* there;
};

}  // namespace

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

// The handler is moved before it is called.
BOOST_AUTO_TEST_CASE(may_be_a_reference_into_the_handler)
{
  asio::io_context elsewhere;
  for (asio::io_context* const other : {static_cast<asio::io_context*>(nullptr), &elsewhere}) {
    context_with_wheel c;
    int there = 0;
    const with_reference h{asio::make_strand(other ? *other : c.context), &there};
    wheel_timer timer(c.wheel, 1ms);
    wheel_watchdog dog(c.wheel, 1ms);
    heartbeat beat(c.wheel, {1ms, 1});
    wheel_interval ticks(c.wheel, 1ms);
    c.wheel.async_wait(1ms, h);
    timer.async_wait(h);
    dog.async_expired(h);
    beat.async_next(h);
    ticks.async_tick(h);
    timer.async_wait(timeout_after(1h, h));
    BOOST_TEST(support::eventually([&] {
      for (asio::io_context* const each : {&c.context, &elsewhere}) {
        each->restart();
        each->poll();
      }
      return there == 6;
    }));
  }
}

BOOST_AUTO_TEST_SUITE_END()
