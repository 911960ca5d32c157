// Who waits: by the type of the handler, and how the next wait to expire is found.
#include <asio_wheel.hpp>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace shop {

struct basket_expired {
  void operator()(boost::system::error_code) const {}
};
struct order_paid {
  void operator()(boost::system::error_code) const {}
};
struct answer_came {
  void operator()(boost::system::error_code, std::size_t) const {}
};

}  // namespace shop

namespace {

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::wheel_in_virtual_time;
using time_point = wheel_timer_service::time_point;

/// The one row whose handler's name contains `name`, or an empty one.
pending_handlers::row row_of(const wheel_timer_service& wheel, const std::string& name)
{
  pending_handlers::row found;
  int rows = 0;
  for (const auto& row : wheel.pending_by_handler().rows) {
    if (row.handler.find(name) == std::string::npos) continue;
    found = row;
    ++rows;
  }
  BOOST_TEST(rows <= 1);
  return found;
}

std::uint64_t count_of(const wheel_timer_service& wheel, const std::string& name)
{
  return row_of(wheel, name).count;
}

std::uint64_t count_of_all(const wheel_timer_service& wheel)
{
  std::uint64_t n = 0;
  for (const auto& row : wheel.pending_by_handler().rows) n += row.count;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pending_by_handler)

BOOST_AUTO_TEST_CASE(finds_who_leaks_timers)
{
  context_with_wheel c;
  std::list<wheel_timer> leaked;
  // A shop that clears a basket's timer when the order is paid, and forgets to in one case of ten.
  for (int i = 0; i < 1000; ++i) {
    auto& timer = leaked.emplace_back(c.wheel, 1h);
    timer.async_wait(shop::basket_expired{});
    c.wheel.async_wait(1ms, shop::order_paid{});
    if (i % 10 != 0) leaked.pop_back();
  }
  support::run_until(c.context, [&] { return count_of(c.wheel, "order_paid") == 0; });
  const auto found = c.wheel.pending_by_handler();
  BOOST_REQUIRE(found.rows.size() == 1U);
  BOOST_TEST(found.rows[0].handler == "shop::basket_expired");
  BOOST_TEST(found.rows[0].count == 100U);
}

BOOST_AUTO_TEST_CASE(of_an_idle_wheel_is_empty)
{
  const context_with_wheel c;
  BOOST_TEST(c.wheel.pending_by_handler().rows.empty());
}

BOOST_AUTO_TEST_CASE(tells_the_earliest_and_the_latest_time)
{
  wheel_in_virtual_time c;
  for (const auto delay : {7s, 3s, 5s}) c.wheel.async_wait(delay, shop::basket_expired{});
  const auto row = row_of(c.wheel, "basket_expired");
  BOOST_TEST(row.count == 3U);
  BOOST_TEST((row.earliest - c.start == 3s));
  BOOST_TEST((row.latest - c.start == 7s));
  BOOST_TEST((c.wheel.pending_by_handler().read_at == c.wheel.now()));
}

BOOST_AUTO_TEST_CASE(lists_the_largest_first)
{
  context_with_wheel c;
  for (int i = 0; i < 2; ++i) c.wheel.async_wait(1h, shop::basket_expired{});
  for (int i = 0; i < 3; ++i) c.wheel.async_wait(1h, shop::order_paid{});
  const auto found = c.wheel.pending_by_handler();
  BOOST_REQUIRE(found.rows.size() == 2U);
  BOOST_TEST(found.rows[0].handler == "shop::order_paid");
  BOOST_TEST(found.rows[1].handler == "shop::basket_expired");
}

BOOST_AUTO_TEST_CASE(a_wait_that_never_expires_is_the_latest_of_all)
{
  context_with_wheel c;
  c.wheel.async_wait(1h, shop::basket_expired{});
  c.wheel.async_wait(wheel_timer_service::duration::max(), shop::basket_expired{});
  const auto row = row_of(c.wheel, "basket_expired");
  BOOST_TEST(row.count == 2U);
  BOOST_TEST((row.latest == time_point::max()));
  BOOST_TEST((row.earliest < time_point::max()));
}

BOOST_AUTO_TEST_CASE(leaves_out_what_was_cancelled)
{
  context_with_wheel c;
  // Alone on its timer, its cancel is put off.
  wheel_timer one(c.wheel, 1h);
  one.async_wait(shop::basket_expired{});
  wheel_timer two(c.wheel, 1h);
  for (int i = 0; i < 2; ++i) two.async_wait(shop::basket_expired{});
  BOOST_TEST(count_of(c.wheel, "basket_expired") == 3U);
  one.cancel();
  BOOST_TEST(count_of(c.wheel, "basket_expired") == 2U);
  two.cancel_one();
  BOOST_TEST(count_of(c.wheel, "basket_expired") == 1U);
  c.wheel.async_wait(0ms, shop::order_paid{});
  c.wheel.cancel_all();
  BOOST_TEST(count_of_all(c.wheel) == 0U);
  BOOST_TEST(!c.wheel.next_expiry());
  c.wheel.async_wait(1h, shop::order_paid{});
  BOOST_TEST(count_of_all(c.wheel) == 1U);
}

BOOST_AUTO_TEST_CASE(has_what_is_due_until_its_handler_begins)
{
  wheel_in_virtual_time c;
  std::vector<std::uint64_t> left;
  for (int i = 0; i < 200; ++i) {  // more than a batch
    c.wheel.async_wait(1ms, [&](boost::system::error_code) {
      left.push_back(count_of_all(c.wheel));
      if (left.back() != 0) BOOST_TEST((*c.wheel.next_expiry() - c.start == 1ms));
    });
  }
  c.time.advance(1ms);
  BOOST_REQUIRE(left.size() == 200U);
  for (std::size_t i = 0; i < left.size(); ++i) BOOST_TEST(left[i] == left.size() - 1 - i);
}

BOOST_AUTO_TEST_CASE(overdue_waits_count_as_expiring_now)
{
  wheel_in_virtual_time c;
  c.wheel.async_wait(-1h, shop::order_paid{});
  const auto row = row_of(c.wheel, "order_paid");
  BOOST_TEST(row.count == 1U);
  BOOST_TEST((row.latest == c.start));
  BOOST_TEST((c.wheel.next_expiry() == c.start));
}

BOOST_AUTO_TEST_CASE(tells_when_a_watchdog_expires_that_was_touched)
{
  wheel_in_virtual_time c;
  wheel_watchdog idle(c.wheel, 30s);
  idle.async_expired(shop::basket_expired{});
  c.time.advance(10s);
  idle.touch();
  const auto row = row_of(c.wheel, "basket_expired");
  BOOST_TEST(row.count == 1U);
  BOOST_TEST((row.latest - c.start == 40s));
}

BOOST_AUTO_TEST_CASE(names_the_handler_of_an_operation_with_a_deadline)
{
  support::operation_on_wheel c;
  c.operation.async_run(cancel_after(1h, shop::answer_came{}));
  const auto row = row_of(c.wheel, "shop::answer_came");
  BOOST_TEST(row.count == 1U);
}

BOOST_AUTO_TEST_CASE(has_one_wait_for_all_that_a_watchdog_guards)
{
  support::operation_on_wheel c;
  support::manual_operation second(c.context.get_executor());
  wheel_watchdog dog(c.wheel, 1h);
  c.operation.async_run(dog.guard(shop::answer_came{}));
  second.async_run(dog.guard([&](boost::system::error_code, std::size_t) {
    // The wait is still there, for the next operation.
    BOOST_TEST(count_of_all(c.wheel) == c.wheel.pending());
  }));
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(row_of(c.wheel, "shop::answer_came").count == 1U);
    BOOST_TEST(count_of_all(c.wheel) == c.wheel.pending());
  }
  c.operation.complete({});
  c.context.poll();
  BOOST_TEST(count_of(c.wheel, "answer_came") == 0U);
  BOOST_TEST(count_of_all(c.wheel) == 1U);
  second.complete({});
  c.context.restart();
  c.context.poll();
  BOOST_TEST(count_of_all(c.wheel) == 0U);
}

BOOST_AUTO_TEST_CASE(sees_what_a_watchdog_guards_whenever_that_is_started)
{
  support::operation_on_wheel c;
  wheel_watchdog dog(c.wheel, 1h);
  for (int i = 0; i < 10; ++i) {
    c.operation.async_run(dog.guard(shop::answer_came{}));
    BOOST_TEST(count_of_all(c.wheel) == 1U);
    c.operation.complete({});
    c.context.restart();
    c.context.poll();
    for (int looks = 0; looks < i; ++looks) BOOST_TEST(count_of_all(c.wheel) == 0U);
  }
}

BOOST_AUTO_TEST_CASE(names_the_handler_behind_an_executor)
{
  context_with_wheel c;
  auto strand = asio::make_strand(c.context);
  wheel_timer timer(c.wheel, 1h);
  timer.async_wait(asio::bind_executor(strand, shop::basket_expired{}));
  c.wheel.async_wait(1h, asio::bind_executor(strand, shop::basket_expired{}));
  BOOST_TEST(count_of(c.wheel, "shop::basket_expired") == 2U);
}

BOOST_AUTO_TEST_CASE(knows_coroutines_by_their_executor_alone)
{
  context_with_wheel c;
  const auto visit = [&c]() -> asio::awaitable<void> { co_await c.wheel.async_wait(1h); };
  for (int i = 0; i < 3; ++i) asio::co_spawn(c.context, visit, asio::detached);
  c.context.poll();
  BOOST_TEST(count_of(c.wheel, "awaitable") == 3U);
}

BOOST_AUTO_TEST_CASE(counts_a_hundred_thousand_in_one_slot_once_each)
{
  context_with_wheel c;
  const auto deadline = c.wheel.now() + 1h;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 4 == 0)
      c.wheel.async_wait(deadline, shop::order_paid{});
    else
      c.wheel.async_wait(deadline, shop::basket_expired{});
  }
  for (int i = 0; i < 5; ++i) {  // one reading does not blind the next
    BOOST_TEST(count_of(c.wheel, "order_paid") == 25'000U);
    BOOST_TEST(count_of(c.wheel, "basket_expired") == 75'000U);
    c.wheel.async_wait(2h, [](boost::system::error_code) {});
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(next_expiry)

BOOST_AUTO_TEST_CASE(of_an_idle_wheel_is_nothing)
{
  context_with_wheel c;
  BOOST_TEST(!c.wheel.next_expiry());
  c.wheel.async_wait(wheel_timer_service::duration::max(), shop::order_paid{});
  BOOST_TEST(!c.wheel.next_expiry());
  // Rounded up to a tick, it never comes either.
  c.wheel.async_wait(time_point::max() - 1ns, shop::order_paid{});
  BOOST_TEST(!c.wheel.next_expiry());
}

BOOST_AUTO_TEST_CASE(is_exact_however_far_away)
{
  for (const auto delay : {5ms, 3'000ms, 1'000'000ms, 1'000'000'000ms}) {
    wheel_in_virtual_time c;
    // In one slot of a coarse level, and in another.
    for (const auto later : {40ms, 2ms, 0ms, 1ms})
      c.wheel.async_wait(delay + later, shop::order_paid{});
    c.wheel.async_wait(10 * delay, shop::order_paid{});
    BOOST_REQUIRE(c.wheel.next_expiry());
    BOOST_TEST((*c.wheel.next_expiry() - c.start == delay));
    c.time.advance(delay - 1ms);
    BOOST_TEST((*c.wheel.next_expiry() - c.start == delay));
  }
}

BOOST_AUTO_TEST_CASE(moves_on_when_the_first_wait_is_cancelled)
{
  wheel_in_virtual_time c;
  wheel_timer first(c.wheel, 1s);
  first.async_wait(shop::order_paid{});
  c.wheel.async_wait(2s, shop::order_paid{});
  BOOST_TEST((*c.wheel.next_expiry() - c.start == 1s));
  first.cancel();
  BOOST_TEST((*c.wheel.next_expiry() - c.start == 2s));
}

BOOST_AUTO_TEST_CASE(moves_on_when_one_of_the_finest_level_is_cancelled)
{
  wheel_in_virtual_time c;
  wheel_timer first(c.wheel, 200ms);
  first.async_wait(shop::order_paid{});
  wheel_timer second(c.wheel, 400ms);
  second.async_wait(shop::order_paid{});
  first.cancel();
  BOOST_TEST((*c.wheel.next_expiry() - c.start == 400ms));
  second.cancel();
  BOOST_TEST(!c.wheel.next_expiry());
}

BOOST_AUTO_TEST_CASE(is_exact_behind_a_cascade)
{
  wheel_in_virtual_time c;
  for (int i = 1; i <= 50; ++i) c.wheel.async_wait(i * 100ms, shop::order_paid{});
  for (int i = 1; i <= 50; ++i) {
    BOOST_TEST((*c.wheel.next_expiry() - c.start == i * 100ms), "wait " << i);
    BOOST_REQUIRE(c.time.advance_to_next());
  }
  BOOST_TEST(!c.wheel.next_expiry());
}

BOOST_AUTO_TEST_CASE(is_exact_while_a_slot_is_handed_down)
{
  wheel_in_virtual_time c;
  for (int i = 0; i < 20'000; ++i) c.wheel.async_wait(1270ms, shop::order_paid{});
  c.wheel.async_wait(1040ms, shop::order_paid{});
  for (int step = 0; step < 110; ++step) {
    BOOST_TEST((*c.wheel.next_expiry() - c.start == 1040ms), "after " << step * 9 << " ms");
    c.time.advance(9ms);
  }
}

BOOST_AUTO_TEST_SUITE_END()
