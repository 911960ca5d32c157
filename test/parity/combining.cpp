// Parity of combining waits: awaitable operators and parallel groups.
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <array>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <vector>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::every_timer;

BOOST_AUTO_TEST_SUITE(combining)

BOOST_AUTO_TEST_CASE_TEMPLATE(or_ends_with_the_first_and_aborts_the_other, Timer, every_timer)
{
  asio::io_context context;
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    Timer slow(context, 1h);
    Timer fast(context, 1ms);
    const auto winner =
      co_await (slow.async_wait(asio::use_awaitable) || fast.async_wait(asio::use_awaitable));
    BOOST_TEST(winner.index() == 1U);
    BOOST_TEST(slow.cancel() == 0U);
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(and_ends_with_the_last, Timer, every_timer)
{
  asio::io_context context;
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    Timer slow(context, 4ms);
    Timer fast(context, 1ms);
    co_await (slow.async_wait(asio::use_awaitable) && fast.async_wait(asio::use_awaitable));
    BOOST_TEST((std::chrono::steady_clock::now() >= slow.expiry()));
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(and_aborts_the_other_when_one_fails, Timer, every_timer)
{
  asio::io_context context;
  Timer slow(context, 1h);
  Timer cancelled(context, 1h);
  const auto both = [&]() -> asio::awaitable<void> {
    co_await (slow.async_wait(asio::use_awaitable) && cancelled.async_wait(asio::use_awaitable));
  };
  // As soon as the coroutine has come so far that it waits, however long that takes.
  const auto cancel = [&](const auto& self) -> void {
    if (cancelled.cancel() == 0) asio::post(context, [&] { self(self); });
  };
  asio::post(context, [&] { cancel(cancel); });
  BOOST_CHECK_THROW(support::run_coroutine(context, both), asio::multiple_exceptions);
  BOOST_TEST(slow.cancel() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_group_for_one_tells_who_came_first, Timer, every_timer)
{
  asio::io_context context;
  Timer slow(context, 1h);
  Timer fast(context, 1ms);
  bool called = false;
  asio::experimental::make_parallel_group(slow.async_wait(asio::deferred),
                                          fast.async_wait(asio::deferred))
    .async_wait(asio::experimental::wait_for_one(),
                [&](std::array<std::size_t, 2> order, error_code of_slow, error_code of_fast) {
                  called = true;
                  BOOST_TEST(order[0] == 1U);
                  BOOST_TEST(of_slow == asio::error::operation_aborted);
                  BOOST_TEST(!of_fast);
                });
  support::run_to_end(context);
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_group_for_all_waits_for_each, Timer, every_timer)
{
  asio::io_context context;
  Timer slow(context);
  Timer fast(context);
  const auto start = std::chrono::steady_clock::now();
  slow.expires_at(start + 5ms);
  fast.expires_at(start + 1ms);
  bool called = false;
  asio::experimental::make_parallel_group(slow.async_wait(asio::deferred),
                                          fast.async_wait(asio::deferred))
    .async_wait(asio::experimental::wait_for_all(),
                [&](std::array<std::size_t, 2> order, error_code of_slow, error_code of_fast) {
                  called = true;
                  BOOST_TEST(order[0] == 1U);
                  BOOST_TEST(order[1] == 0U);
                  BOOST_TEST(!of_slow);
                  BOOST_TEST(!of_fast);
                });
  support::run_to_end(context);
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_ranged_group_holds_any_number_of_waits, Timer, every_timer)
{
  asio::io_context context;
  std::vector<Timer> timers;
  for (int i = 0; i < 8; ++i) timers.emplace_back(context, i == 5 ? 1ms : 3600000ms);
  using operation = decltype(timers.front().async_wait(asio::deferred));
  std::vector<operation> waits;
  for (auto& timer : timers) waits.push_back(timer.async_wait(asio::deferred));
  bool called = false;
  asio::experimental::make_parallel_group(std::move(waits))
    .async_wait(asio::experimental::wait_for_one(),
                [&](const std::vector<std::size_t>& order, const std::vector<error_code>& ec) {
                  called = true;
                  BOOST_TEST(order.front() == 5U);
                  BOOST_TEST(!ec[5]);
                  BOOST_TEST(ec[0] == asio::error::operation_aborted);
                });
  support::run_to_end(context);
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_SUITE_END()
