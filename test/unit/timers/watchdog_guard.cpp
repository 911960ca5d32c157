// guard(): operations tied to a watchdog or a heartbeat.
#include <boost/asio/append.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::manual_operation;

namespace {

struct guarded_operations : support::wheel_in_virtual_time {
  explicit guarded_operations(wheel_options options = {}) : wheel_in_virtual_time(options) {}

  void run_ready()
  {
    context.restart();
    context.poll();
  }

  wheel_watchdog dog{wheel, 100ms};
  manual_operation operation{context.get_executor()};
  support::result result;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(guard)

BOOST_AUTO_TEST_CASE(ends_an_operation_with_timed_out_when_the_watchdog_expires)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  c.time.advance(99ms);
  BOOST_TEST(c.result.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  BOOST_TEST((c.operation.seen == std::vector{cancellation_type::terminal}));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(ends_an_operation_with_the_error_that_was_set)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  c.dog.set_error(asio::error::no_recovery);
  wheel_watchdog moved(std::move(c.dog));
  c.time.advance(100ms);
  BOOST_TEST(c.result.failed(asio::error::no_recovery));
  support::result aborted;
  moved.touch();
  c.operation.async_run(moved.guard(aborted.recorder()));
  BOOST_TEST(c.wheel.cancel_all() != 0U);
  c.time.advance(1ms);
  BOOST_TEST(aborted.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(of_a_heartbeat_ends_an_operation_with_the_error_that_was_set)
{
  guarded_operations c;
  heartbeat beat(c.wheel, {.interval = 10ms, .max_missed = 1});
  beat.set_error(asio::error::network_reset);
  c.operation.async_run(beat.guard(c.result.recorder()));
  c.time.advance(20ms);
  BOOST_TEST(c.result.failed(asio::error::network_reset));
}

BOOST_AUTO_TEST_CASE(tells_two_guards_apart_by_their_errors)
{
  guarded_operations c;
  wheel_watchdog outer(c.wheel, 50ms);
  outer.set_error(asio::error::host_not_found);
  c.dog.set_error(asio::error::no_recovery);
  c.operation.async_run(c.dog.guard(outer.guard(c.result.recorder())));
  c.time.advance(50ms);
  BOOST_TEST(c.result.failed(asio::error::host_not_found));
}

// The result is behind the function that destroys the watchdog, and with it the last owner of the
// guard. Found by reading; ASan saw it.
BOOST_AUTO_TEST_CASE(ends_an_operation_whose_watchdog_goes_before_its_result_is_delivered)
{
  guarded_operations c;
  std::optional<wheel_watchdog> dog(std::in_place, c.wheel, 50ms);
  c.operation.when_cancelled = [&] { asio::post(c.context, [&] { dog.reset(); }); };
  c.operation.async_run(dog->guard(c.result.recorder()));
  c.time.advance(50ms);
  BOOST_TEST(!dog);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(ends_any_number_of_operations_and_a_touch_puts_all_of_them_off)
{
  guarded_operations c;
  std::vector<std::unique_ptr<manual_operation>> operations;
  std::vector<support::result> results(50);
  for (auto& r : results) {
    auto& op =
      operations.emplace_back(std::make_unique<manual_operation>(c.context.get_executor()));
    op->async_run(c.dog.guard(r.recorder()));
  }
  BOOST_TEST(c.wheel.pending() == 1U);
  for (int i = 0; i < 5; ++i) {
    c.time.advance(90ms);
    c.dog.touch();
  }
  c.time.advance(99ms);
  for (const auto& r : results) BOOST_TEST(r.pending());
  c.time.advance(1ms);
  for (const auto& r : results) BOOST_TEST(r.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(of_a_deferred_operation_can_be_replaced_by_another)
{
  guarded_operations c;
  wheel_watchdog shorter{c.wheel, 50ms};
  auto guarded = c.operation.async_run(c.dog.guard(asio::deferred));
  guarded = c.operation.async_run(shorter.guard(asio::deferred));
  std::move(guarded)(c.result.recorder());
  c.time.advance(50ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(leaves_the_result_to_an_operation_that_completes_first)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  c.operation.complete({}, 7);
  c.run_ready();
  BOOST_TEST(c.result.succeeded(7));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(leaves_the_result_to_an_operation_that_does_not_obey)
{
  guarded_operations c;
  c.operation.obeys = false;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  c.time.advance(100ms);
  BOOST_TEST(c.operation.seen.size() == 1U);
  c.operation.complete({}, 7);
  c.run_ready();
  BOOST_TEST(c.result.succeeded(7));
}

BOOST_AUTO_TEST_CASE(keeps_the_context_running_for_no_longer_than_its_operations)
{
  support::context_with_wheel c;
  wheel_watchdog dog(c.wheel, 1h);
  asio::steady_timer timer(c.context, 1ms);
  timer.async_wait(dog.guard([](error_code) {}));
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(files_nothing_for_operations_that_follow_one_another)
{
  guarded_operations c;
  const auto before = c.wheel.stats().started;
  int left = 1000;
  std::function<void()> next = [&] {
    asio::post(c.context, asio::append(c.dog.guard([&](error_code) {
                 if (--left > 0) next();
               }),
                                       error_code()));
  };
  next();
  while (left > 0) c.run_ready();
  BOOST_TEST(c.wheel.stats().started - before == 1U);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(cancels_what_is_started_after_the_expiry_at_once)
{
  guarded_operations c;
  c.time.advance(200ms);
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  BOOST_TEST(c.result.pending());
  c.time.advance(0ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(asks_again_where_the_handler_is_to_run)
{
  guarded_operations c;
  asio::io_context other;
  manual_operation elsewhere(other.get_executor());
  elsewhere.async_run(c.dog.guard(c.result.recorder()));
  c.time.advance(100ms);  // the cancellation is on its way to the other context
  c.dog.touch();
  other.poll();
  BOOST_TEST(elsewhere.seen.empty());
  c.time.advance(99ms);
  other.restart();
  other.poll();
  BOOST_TEST(elsewhere.seen.empty());
  c.time.advance(1ms);
  other.restart();
  other.poll();
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(puts_an_operation_on_a_strand_off_at_the_last_moment)
{
  guarded_operations c;
  const auto strand = asio::make_strand(c.context);
  manual_operation operation(strand);
  // Holds up the strand until the cancellation is behind it.
  bool touched = false;
  operation.async_run(c.dog.guard(asio::bind_executor(strand, c.result.recorder())));
  c.dog.async_expired(asio::bind_executor(strand, [&](error_code) {
    touched = true;
    c.dog.touch();
  }));
  c.time.advance(100ms);
  BOOST_TEST(touched);
  BOOST_TEST(operation.seen.empty());
  c.time.advance(100ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(ends_operations_sooner_when_the_timeout_is_shortened)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  c.dog.set_timeout(20ms);
  c.time.advance(20ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(leaves_operations_alone_when_the_watchdog_is_destroyed)
{
  guarded_operations c;
  std::optional<wheel_watchdog> dog(std::in_place, c.wheel, 100ms);
  auto token = dog->guard(c.result.recorder());
  support::result other;
  c.operation.async_run(dog->guard(other.recorder()));
  dog.reset();
  manual_operation late(c.context.get_executor());
  late.async_run(std::move(token));
  c.time.advance(200ms);
  BOOST_TEST(c.operation.seen.empty());
  BOOST_TEST(late.seen.empty());
  BOOST_TEST(c.wheel.pending() == 0U);
  c.operation.complete({}, 1);
  late.complete({}, 2);
  c.run_ready();
  BOOST_TEST(other.succeeded(1));
  BOOST_TEST(c.result.succeeded(2));
}

BOOST_AUTO_TEST_CASE(lets_a_session_go_with_the_cancellation_on_its_way)
{
  // As it happens when the socket and the watchdog of a session are destroyed together.
  guarded_operations c;
  asio::io_context other;
  auto timer = std::make_unique<asio::steady_timer>(other, 1h);
  std::optional<wheel_watchdog> dog(std::in_place, c.wheel, 100ms);
  error_code ended;
  timer->async_wait(dog->guard([&](error_code ec) { ended = ec; }));
  c.time.advance(100ms);
  timer.reset();
  dog.reset();
  other.run();
  BOOST_TEST(ended == asio::error::operation_aborted);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(moves_with_the_watchdog)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  wheel_watchdog second(std::move(c.dog));
  wheel_watchdog third(c.wheel, 10ms);
  manual_operation left_behind(c.context.get_executor());
  support::result of_third;
  left_behind.async_run(third.guard(of_third.recorder()));
  third = std::move(second);
  c.run_ready();
  BOOST_TEST(of_third.pending());
  left_behind.drop();
  c.time.advance(50ms);
  third.touch();
  c.time.advance(99ms);
  BOOST_TEST(c.result.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  // What was moved from guards on its own account.
  support::result of_first;
  c.dog.touch();
  c.operation.async_run(c.dog.guard(of_first.recorder()));
  c.time.advance(100ms);
  BOOST_TEST(of_first.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(leaves_operations_alone_when_the_waits_are_cancelled)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  c.dog.async_expired([](error_code) {});
  BOOST_TEST(c.dog.cancel() == 1U);
  c.run_ready();
  BOOST_TEST(c.result.pending());
  c.time.advance(100ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(passes_on_a_cancellation_of_another_cause)
{
  guarded_operations c;
  asio::cancellation_signal signal;
  c.operation.async_run(
    c.dog.guard(asio::bind_cancellation_slot(signal.slot(), c.result.recorder())));
  signal.emit(cancellation_type::partial);
  c.run_ready();
  BOOST_TEST((c.operation.seen == std::vector{cancellation_type::partial}));
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(cancels_by_the_type_that_it_is_given)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(cancellation_type::total, c.result.recorder()));
  c.time.advance(100ms);
  BOOST_TEST((c.operation.seen == std::vector{cancellation_type::total}));
}

BOOST_AUTO_TEST_CASE(is_cancelled_with_everything_else)
{
  guarded_operations c;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  c.run_ready();
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(is_not_cancelled_with_what_started_before_it)
{
  guarded_operations c;
  manual_operation later(c.context.get_executor());
  support::result of_later;
  c.operation.async_run(c.dog.guard(c.result.recorder()));
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  later.async_run(c.dog.guard(of_later.recorder()));
  c.run_ready();
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  BOOST_TEST(of_later.pending());
  BOOST_TEST(c.wheel.pending() == 1U);
  c.time.advance(100ms);
  BOOST_TEST(of_later.failed(asio::error::timed_out));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(is_refused_with_too_many_pending)
{
  wheel_options options;
  options.max_pending = 1;
  support::context_with_wheel c(options);
  wheel_watchdog dog(c.wheel, 1h);
  manual_operation operation(c.context.get_executor());
  support::result result;
  c.wheel.async_wait(1h, [](error_code) {});
  operation.async_run(dog.guard(result.recorder()));
  support::run_until(c.context, [&] { return !result.pending(); });
  BOOST_TEST(result.failed(wheel_errc::too_many_pending));
  BOOST_TEST(c.wheel.stats().rejected == 1U);
  c.wheel.cancel_all();
  // And what ends leaves its place to others.
  for (int i = 0; i < 3; ++i) {
    support::result next;
    wheel_watchdog soon(c.wheel, 1ms);
    operation.async_run(soon.guard(next.recorder()));
    support::run_until(c.context, [&] { return !next.pending(); });
    BOOST_TEST(next.failed(asio::error::timed_out));
  }
}

BOOST_AUTO_TEST_CASE(takes_every_kind_of_token)
{
  guarded_operations c;
  auto future = c.operation.async_run(c.dog.guard(asio::use_future));
  c.operation.complete({}, 3);
  c.run_ready();
  BOOST_TEST(future.get() == 3U);
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      asio::post(c.context, [&] { c.operation.complete({}, 4); });
      BOOST_TEST(co_await c.operation.async_run(c.dog.guard()) == 4U);
      asio::post(c.context, [&] { c.operation.complete({}, 5); });
      BOOST_TEST(co_await (c.operation.async_run(asio::deferred) | c.dog.guard()) == 5U);
      asio::post(c.context, [&] { c.operation.complete({}, 6); });
      BOOST_TEST(co_await c.operation.async_run(c.dog.guard(timeout_after(1h))) == 6U);
      c.result.calls = 1;
    },
    [](std::exception_ptr e) {
      if (e) std::rethrow_exception(e);
    });
  c.run_ready();
  BOOST_TEST(c.result.calls == 1);
}

BOOST_AUTO_TEST_CASE(is_fulfilled_by_an_operation_that_completes_at_once)
{
  guarded_operations c;
  asio::post(c.context, asio::append(c.dog.guard(c.result.recorder()), error_code(), 9U));
  BOOST_TEST(c.result.pending());
  c.run_ready();
  BOOST_TEST(c.result.succeeded(9));
}

BOOST_AUTO_TEST_CASE(lets_a_context_go_with_operations_in_flight)
{
  auto c = std::make_unique<support::context_with_wheel>();
  asio::io_context other;
  support::result result;
  manual_operation here(c->context.get_executor());
  manual_operation there(other.get_executor());
  wheel_watchdog dog(c->wheel, 1h);
  here.async_run(dog.guard([](error_code, std::size_t) {}));
  there.async_run(dog.guard(result.recorder()));
  c.reset();
  there.complete({}, 2);
  other.poll();
  BOOST_TEST(result.succeeded(2));
  // Guarded by nobody, for there is no wheel.
  there.async_run(dog.guard(result.recorder()));
  there.complete({}, 3);
  here.drop();
}

BOOST_AUTO_TEST_CASE(lets_the_context_of_an_operation_go_first)
{
  guarded_operations c;
  auto other = std::make_unique<asio::io_context>();
  auto timer = std::make_unique<asio::steady_timer>(*other, 1h);
  timer->async_wait(c.dog.guard([](error_code) {}));
  c.time.advance(100ms);  // on its way there
  timer.reset();
  other.reset();
  c.dog.touch();
  c.time.advance(200ms);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(ends_with_its_last_reference_and_owns_no_handler)
{
  guarded_operations c;
  auto token = std::make_shared<int>(1);
  c.operation.async_run(c.dog.guard([token](error_code, std::size_t) {}));
  BOOST_TEST(token.use_count() == 2);
  c.operation.drop();
  BOOST_TEST(token.use_count() == 1);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(of_a_heartbeat_comes_when_the_peer_is_lost_and_not_with_a_ping)
{
  guarded_operations c;
  heartbeat beat(c.wheel, {.interval = 10ms, .max_missed = 3});
  c.operation.async_run(beat.guard(c.result.recorder()));
  c.time.advance(20ms);
  beat.sent();
  beat.received();
  c.time.advance(39ms);
  BOOST_TEST(c.result.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_SUITE_END()
