// Makes a context's wheel, and finds it from everything that belongs to the context.
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <stdexcept>
#include <string_view>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

#if !defined(ASIO_WHEEL_STANDALONE) && __has_include(<boost/asio/config.hpp>)
#include <boost/asio/config.hpp>
#endif

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::outcome;

BOOST_AUTO_TEST_SUITE(making_a_wheel)

BOOST_AUTO_TEST_CASE(make_wheel_needs_no_options)
{
  asio::io_context context;
  BOOST_TEST(!asio::has_service<wheel_timer_service>(context));
  auto& wheel = make_wheel(context);
  BOOST_TEST(asio::has_service<wheel_timer_service>(context));
  BOOST_TEST((wheel.options().tick == 1ms));
  BOOST_TEST((&wheel.context() == &context));
}

BOOST_AUTO_TEST_CASE(what_converts_to_a_context_stands_for_it)
{
  struct owner {
    using executor_type = asio::io_context::executor_type;
    operator asio::io_context&() { return context; }
    executor_type get_executor() { return context.get_executor(); }
    asio::io_context context;
  } o;
  wheel_timer timer(o, 1ms);
  BOOST_TEST((timer.get_executor() == o.context.get_executor()));
  BOOST_TEST((&use_wheel(o) == &use_wheel(o.context)));
}

#if !defined(ASIO_WHEEL_STANDALONE) && __has_include(<boost/asio/config.hpp>)
BOOST_AUTO_TEST_CASE(the_configuration_of_a_context_has_the_default_options_of_its_wheel)
{
  const asio::config_from_string given(
    "wheel.tick_usec=5000\nwheel.slots=64\nwheel.shards=2\n"
    "wheel.max_pending=7\nwheel.coarse_clock=1\n");
  asio::io_context context(given), service(given), made(given);
  for (const auto* wheel :
       {&use_wheel(context), &asio::use_service<wheel_timer_service>(service)}) {
    const wheel_options& o = wheel->options();
    BOOST_TEST((o.tick == 5ms));
    BOOST_TEST(o.slots == 64U);
    BOOST_TEST(o.shards == 2U);
    BOOST_TEST(o.max_pending == 7U);
    BOOST_TEST((o.clock == clock_source::coarse));
  }
  BOOST_TEST((make_wheel(made).options().tick == 1ms));
  asio::io_context plain(asio::config_from_string("wheel.slots=2"));
  BOOST_TEST((use_wheel(plain).options().tick == 1ms));
  BOOST_TEST(use_wheel(plain).options().slots == 2U);
}

BOOST_AUTO_TEST_CASE(a_bad_configuration_is_refused_and_named)
{
  asio::io_context bad(asio::config_from_string("wheel.tick_usec=never"));
  BOOST_CHECK_EXCEPTION(use_wheel(bad), std::invalid_argument, [](const auto& e) {
    return std::string_view(e.what()).starts_with("wheel_options::tick is 0ns");
  });
  BOOST_TEST(!asio::has_service<wheel_timer_service>(bad));
}
#endif

BOOST_AUTO_TEST_CASE(a_second_make_wheel_is_refused_and_changes_nothing)
{
  asio::io_context context;
  auto& wheel = make_wheel(context, support::with_tick(7ms));
  outcome wait;
  wheel.async_wait(1ms, wait.recorder());
  BOOST_CHECK_THROW(make_wheel(context), asio::service_already_exists);
  BOOST_TEST((&use_wheel(context) == &wheel));
  BOOST_TEST((wheel.options().tick == 7ms));
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(make_wheel_after_use_wheel_is_refused)
{
  asio::io_context context;
  use_wheel(context);
  BOOST_CHECK_THROW(make_wheel(context, support::with_tick(7ms)), asio::service_already_exists);
}

BOOST_AUTO_TEST_CASE(make_wheel_after_a_timer_says_what_made_the_wheel_and_what_to_do)
{
  asio::io_context context;
  wheel_timer timer(context);
  BOOST_CHECK_EXCEPTION(make_wheel(context), asio::service_already_exists, [](const auto& e) {
    const std::string_view what = e.what();
    return what.find("first timer") != what.npos && what.find("use_wheel()") != what.npos;
  });
}

BOOST_AUTO_TEST_CASE(bad_options_leave_the_context_without_a_wheel)
{
  asio::io_context context;
  BOOST_CHECK_THROW(make_wheel(context, support::with_tick(0ns)), std::invalid_argument);
  BOOST_TEST(!asio::has_service<wheel_timer_service>(context));
  BOOST_CHECK_NO_THROW(make_wheel(context, support::with_tick(1ms)));
}

BOOST_AUTO_TEST_CASE(a_pool_can_have_a_wheel)
{
  asio::thread_pool pool(1);
  auto& wheel = make_wheel(pool, support::with_tick(2ms));
  BOOST_TEST((&use_wheel(pool) == &wheel));
  BOOST_TEST((wheel.get_executor() == pool.get_executor()));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(using_a_wheel)

BOOST_AUTO_TEST_CASE(use_wheel_finds_the_wheel_that_was_made)
{
  asio::io_context context;
  auto& wheel = make_wheel(context, support::with_tick(3ms));
  const asio::any_io_executor erased = context.get_executor();
  const auto strand = asio::make_strand(context);
  const asio::any_io_executor erased_strand = strand;
  const asio::strand<asio::any_io_executor> strand_of_erased(erased);
  asio::ip::tcp::socket socket(context);
  BOOST_TEST((&use_wheel(context) == &wheel));
  BOOST_TEST((&use_wheel(context.get_executor()) == &wheel));
  BOOST_TEST((&use_wheel(erased) == &wheel));
  BOOST_TEST((&use_wheel(strand) == &wheel));
  BOOST_TEST((&use_wheel(erased_strand) == &wheel));
  BOOST_TEST((&use_wheel(strand_of_erased) == &wheel));
  BOOST_TEST((&use_wheel(socket.get_executor()) == &wheel));
  BOOST_TEST((&asio::use_service<wheel_timer_service>(context) == &wheel));
}

BOOST_AUTO_TEST_CASE(use_wheel_makes_a_wheel_with_defaults_if_there_is_none)
{
  asio::io_context context;
  auto& wheel = use_wheel(context);
  BOOST_TEST((wheel.options().tick == 1ms));
  BOOST_TEST(asio::has_service<wheel_timer_service>(context));
  BOOST_TEST((&use_wheel(context) == &wheel));
}

BOOST_AUTO_TEST_CASE(use_service_makes_a_wheel_too)
{
  asio::io_context context;
  auto& wheel = asio::use_service<wheel_timer_service>(context);
  BOOST_TEST((&use_wheel(context) == &wheel));
  outcome wait;
  wheel.async_wait(1ms, wait.recorder());
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(use_service_makes_no_wheel_if_the_executor_is_unknown)
{
  asio::thread_pool pool(1);
  BOOST_CHECK_THROW(asio::use_service<wheel_timer_service>(pool), std::logic_error);
  BOOST_TEST(!asio::has_service<wheel_timer_service>(pool));
  auto& wheel = use_wheel(pool);
  BOOST_TEST((&asio::use_service<wheel_timer_service>(pool) == &wheel));
}

BOOST_AUTO_TEST_CASE(a_strand_does_not_bind_the_wheel_to_it)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  auto& wheel = use_wheel(asio::any_io_executor(strand));
  BOOST_TEST((wheel.get_executor() == context.get_executor()));
  outcome wait;
  bool on_strand = true;
  wheel.async_wait(1ms, [&](error_code ec) {
    wait.recorder()(ec);
    on_strand = strand.running_in_this_thread();
  });
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST(!on_strand);
}

BOOST_AUTO_TEST_CASE(an_executor_with_work_does_not_keep_the_context_running)
{
  asio::io_context context;
  {
    const asio::any_io_executor with_work =
      asio::require(context.get_executor(), asio::execution::outstanding_work.tracked);
    use_wheel(with_work);
  }
  BOOST_TEST(context.run() == 0U);
  BOOST_TEST(context.stopped());
}

BOOST_AUTO_TEST_CASE(an_executor_that_never_blocks_still_runs_handlers)
{
  asio::io_context context;
  const asio::any_io_executor never_blocks =
    asio::require(context.get_executor(), asio::execution::blocking.never);
  auto& wheel = use_wheel(never_blocks);
  outcome wait;
  wheel.async_wait(1ms, wait.recorder());
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(strands_of_a_pool_find_the_pools_wheel)
{
  asio::thread_pool pool(1);
  auto& wheel = use_wheel(asio::make_strand(pool));
  BOOST_TEST((wheel.get_executor() == pool.get_executor()));
  BOOST_TEST((&use_wheel(pool) == &wheel));
  BOOST_TEST((&use_wheel(asio::any_io_executor(asio::make_strand(pool))) == &wheel));
}

BOOST_AUTO_TEST_SUITE_END()
