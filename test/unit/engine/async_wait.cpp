// wheel.async_wait with every completion token.
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "support/ledger.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;
using boost::system::system_error;
using support::context_with_wheel;
using support::outcome;

namespace {

bool says_aborted(const system_error& e)
{
  return e.code() == asio::error::operation_aborted;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(async_wait_callback)

BOOST_AUTO_TEST_CASE(may_be_move_only)
{
  context_with_wheel c;
  int got = 0;
  c.wheel.async_wait(1ms, [owned = std::make_unique<int>(7), &got](error_code) { got = *owned; });
  support::run_to_end(c.context);
  BOOST_TEST(got == 7);
}

BOOST_AUTO_TEST_CASE(may_be_an_lvalue_that_stays_usable)
{
  context_with_wheel c;
  int calls = 0;
  auto handler = [&calls](const error_code& ec) { calls += ec ? 0 : 1; };
  c.wheel.async_wait(1ms, handler);
  c.wheel.async_wait(c.wheel.now() + 1ms, handler);
  support::run_to_end(c.context);
  BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(may_be_bound_to_executor_allocator_and_slot_at_once)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  support::ledger books;
  asio::cancellation_signal signal;
  outcome wait;
  bool on_strand = false;
  c.wheel.async_wait(
    1h, asio::bind_cancellation_slot(
          signal.slot(), asio::bind_executor(
                           strand, asio::bind_allocator(
                                     support::booking_allocator<void>(books), [&](error_code ec) {
                                       wait.recorder()(ec);
                                       on_strand = strand.running_in_this_thread();
                                     }))));
  BOOST_TEST(books.outstanding == 1U);
  signal.emit(asio::cancellation_type::partial);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
  BOOST_TEST(on_strand);
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_CASE(may_be_detached)
{
  context_with_wheel c;
  c.wheel.async_wait(1ms, asio::detached);
  c.wheel.async_wait(1h, asio::detached);
  BOOST_TEST(c.wheel.pending() == 2U);
  support::run_until(c.context, [&] { return c.wheel.pending() == 1; });
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(takes_part_in_a_parallel_group)
{
  context_with_wheel c;
  bool called = false;
  asio::experimental::make_parallel_group(c.wheel.async_wait(1h), c.wheel.async_wait(1ms))
    .async_wait(asio::experimental::wait_for_one(),
                [&](std::array<std::size_t, 2> order, error_code slow, error_code fast) {
                  called = true;
                  BOOST_TEST(order[0] == 1U);
                  BOOST_TEST(slow == asio::error::operation_aborted);
                  BOOST_TEST(!fast);
                });
  support::run_to_end(c.context);
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(is_deferred_if_there_is_no_token)
{
  context_with_wheel c;
  outcome wait;
  auto operation = c.wheel.async_wait(1h);
  BOOST_TEST(c.wheel.pending() == 0U);
  std::move(operation)(wait.recorder());
  BOOST_TEST(c.wheel.pending() == 1U);
  c.wheel.cancel_all();
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(a_deferred_delay_counts_from_its_launch)
{
  context_with_wheel c;
  auto operation = c.wheel.async_wait(5ms);
  std::this_thread::sleep_for(6ms);
  const auto launched = c.wheel.now();
  outcome wait;
  std::move(operation)(wait.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST((c.wheel.now() >= launched + 5ms));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(async_wait_future)

BOOST_AUTO_TEST_CASE(becomes_ready_at_expiry)
{
  context_with_wheel c;
  std::future<void> done = c.wheel.async_wait(2ms, asio::use_future);
  BOOST_TEST((done.wait_for(0s) == std::future_status::timeout));
  support::run_to_end(c.context);
  BOOST_REQUIRE((done.wait_for(0s) == std::future_status::ready));
  BOOST_CHECK_NO_THROW(done.get());
}

BOOST_AUTO_TEST_CASE(can_be_waited_for_by_another_thread)
{
  context_with_wheel c;
  const auto deadline = c.wheel.now() + 3ms;
  std::future<void> done = c.wheel.async_wait(deadline, asio::use_future);
  std::thread loop([&] { c.context.run(); });
  done.get();
  BOOST_TEST((c.wheel.now() >= deadline));
  loop.join();
}

BOOST_AUTO_TEST_CASE(throws_when_cancelled)
{
  context_with_wheel c;
  std::future<void> done = c.wheel.async_wait(1h, asio::use_future);
  c.wheel.cancel_all();
  support::run_to_end(c.context);
  BOOST_CHECK_EXCEPTION(done.get(), system_error, says_aborted);
}

BOOST_AUTO_TEST_CASE(throws_when_refused)
{
  context_with_wheel c(support::with_limit(1));
  c.wheel.async_wait(1ms, asio::detached);
  std::future<void> done = c.wheel.async_wait(1ms, asio::use_future);
  support::run_to_end(c.context);
  BOOST_CHECK_EXCEPTION(done.get(), system_error, [](const system_error& e) {
    return e.code() == wheel_errc::too_many_pending;
  });
}

BOOST_AUTO_TEST_CASE(is_broken_when_the_context_goes)
{
  std::future<void> done;
  {
    context_with_wheel c;
    done = c.wheel.async_wait(1h, asio::use_future);
  }
  BOOST_CHECK_THROW(done.get(), std::future_error);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(async_wait_coroutine)

BOOST_AUTO_TEST_CASE(needs_no_token)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto deadline = c.wheel.now() + 5ms;
    co_await c.wheel.async_wait(5ms);
    BOOST_TEST((c.wheel.now() >= deadline));
    co_await c.wheel.async_wait(c.wheel.now() + 1ms);
  });
}

BOOST_AUTO_TEST_CASE(throws_what_the_wait_ended_with)
{
  context_with_wheel c;
  const auto waiting = [&]() -> asio::awaitable<void> {
    asio::post(c.context, [&] { BOOST_TEST(c.wheel.cancel_all() == 1U); });
    co_await c.wheel.async_wait(1h, asio::use_awaitable);
  };
  BOOST_CHECK_EXCEPTION(support::run_coroutine(c.context, waiting), system_error, says_aborted);
}

BOOST_AUTO_TEST_CASE(gets_the_error_as_a_tuple)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto [ok] = co_await c.wheel.async_wait(1ms, asio::as_tuple(asio::use_awaitable));
    BOOST_TEST(!ok);
    asio::post(c.context, [&] { c.wheel.cancel_all(); });
    const auto [ec] = co_await c.wheel.async_wait(1h, asio::as_tuple(asio::use_awaitable));
    BOOST_TEST(ec == asio::error::operation_aborted);
  });
}

BOOST_AUTO_TEST_CASE(gets_the_error_redirected)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    error_code ec;
    asio::post(c.context, [&] { c.wheel.cancel_all(); });
    co_await c.wheel.async_wait(1h, asio::redirect_error(asio::use_awaitable, ec));
    BOOST_TEST(ec == asio::error::operation_aborted);
  });
}

BOOST_AUTO_TEST_CASE(stays_on_its_strand)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  bool done = false;
  asio::co_spawn(
    strand,
    [&]() -> asio::awaitable<void> {
      co_await c.wheel.async_wait(1ms);
      BOOST_TEST(strand.running_in_this_thread());
      done = true;
    },
    asio::detached);
  support::run_to_end(c.context);
  BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(is_ended_by_whoever_spawned_it)
{
  context_with_wheel c;
  asio::cancellation_signal signal;
  std::exception_ptr thrown;
  asio::co_spawn(
    c.context, [&]() -> asio::awaitable<void> { co_await c.wheel.async_wait(1h); },
    asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { thrown = e; }));
  c.context.poll();
  BOOST_TEST(c.wheel.pending() == 1U);
  signal.emit(asio::cancellation_type::terminal);
  support::run_to_end(c.context);
  BOOST_REQUIRE(thrown);
  BOOST_CHECK_EXCEPTION(std::rethrow_exception(thrown), system_error, says_aborted);
}

BOOST_AUTO_TEST_CASE(can_be_raced_and_joined)
{
  using namespace asio::experimental::awaitable_operators;
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto winner = co_await (c.wheel.async_wait(1h, asio::use_awaitable) ||
                                  c.wheel.async_wait(1ms, asio::use_awaitable));
    BOOST_TEST(winner.index() == 1U);
    BOOST_TEST(c.wheel.pending() == 0U);
    co_await (c.wheel.async_wait(2ms, asio::use_awaitable) &&
              c.wheel.async_wait(1ms, asio::use_awaitable));
  });
}

BOOST_AUTO_TEST_CASE(may_go_with_the_context_while_it_waits)
{
  const auto alive = std::make_shared<int>(0);
  {
    context_with_wheel c;
    asio::co_spawn(
      c.context,
      [](wheel_timer_service& wheel, std::shared_ptr<int> mine) -> asio::awaitable<void> {
        co_await wheel.async_wait(1h);
        ++*mine;
      }(c.wheel, alive),
      asio::detached);
    c.context.poll();
    BOOST_TEST(c.wheel.pending() == 1U);
    BOOST_TEST(alive.use_count() > 1);
  }
  BOOST_TEST(alive.use_count() == 1);
  BOOST_TEST(*alive == 0);
}

BOOST_AUTO_TEST_SUITE_END()
