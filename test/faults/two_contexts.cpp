// Fault: an operation runs in context A, its deadline on the wheel of context B, and its handler in
// A or in a strand of context C. A ends the operation, A goes or B goes, wherever the deadline is.
//
// An operation that ends is delivered at once, whatever B does. If A goes, it destroys the
// operation uncalled; if B goes, the operation goes on.
#include "faults/two_contexts.hpp"

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "support/run.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace faults;
using namespace std::chrono_literals;
using asio::cancellation_type;
using asio::error::operation_aborted;

namespace {

/// A coroutine that waits on its own socket, with a deadline on another context's wheel.
asio::awaitable<void> receive(wheel_timer_service& wheel, wheel_timer_service::time_point deadline,
                              [[maybe_unused]] std::shared_ptr<int> life)
{
  using asio::ip::udp;
  udp::socket socket(co_await asio::this_coro::executor,
                     udp::endpoint(asio::ip::address_v4::loopback(), 0));
  std::array<char, 1> byte{};
  co_await socket.async_receive(asio::buffer(byte),
                                cancel_at(wheel, deadline, asio::use_awaitable));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(operation_and_wheel_in_two_contexts)

// A ends the operation.

BOOST_AUTO_TEST_CASE(the_end_of_the_operation_is_delivered_without_b)
{
  in_all_places([](scene& s, place p) {
    s.start_and_complete(p, {}, 7);
    BOOST_TEST(s.result.succeeded(7));
    BOOST_TEST(s.books.outstanding == 0U);
    BOOST_TEST(s.fired() == (has_arrived(p) ? 1U : 0U));

    s.run_b();
    s.poll();
    BOOST_TEST(s.result.calls == 1);
    BOOST_TEST(s.fired() == (has_arrived(p) ? 1U : 0U));
  });
}

BOOST_AUTO_TEST_CASE(an_abort_is_a_timeout_only_if_the_deadline_has_fired)
{
  for (const bool with_report : {true, false}) {
    in_all_places([with_report](scene& s, place p) {
      s.start_and_complete(p, operation_aborted, 0, with_report);
      BOOST_TEST(s.result.calls == 1);
      if (with_report || p == place::refusal_told)
        BOOST_TEST(s.result.error == report_of_abort(p));
      else
        BOOST_TEST(s.result.error == error_code(operation_aborted));
      BOOST_TEST(s.books.outstanding == 0U);
      s.run_b();
    });
  }
}

BOOST_AUTO_TEST_CASE(the_operation_that_is_dropped_is_destroyed_at_once)
{
  in_all_places([](scene& s, place p) {
    s.start(p);
    s.operation.drop();
    // A deadline on its way has the state until it arrives.
    BOOST_TEST(s.books.outstanding == (is_under_way(p) ? 1U : 0U));
    s.poll();
    s.run_b();
    s.poll();
    BOOST_TEST(s.books.outstanding == 0U);
    BOOST_TEST(s.result.pending());
    BOOST_TEST(s.fired() == (has_arrived(p) ? 1U : 0U));
  });
}

BOOST_AUTO_TEST_CASE(a_handler_of_b_completes_the_operation_whose_deadline_is_next)
{
  for (const bool drops : {false, true}) {
    scene s(handler_in::a);
    s.b = std::make_unique<support::context_with_wheel>();
    const auto deadline = s.b->wheel.now() + 1ms;
    s.b->wheel.async_wait(deadline, [&](error_code) {
      if (drops)
        s.operation.drop();
      else
        s.operation.complete({}, 7);
      s.poll();
      BOOST_TEST(s.result.calls == (drops ? 0 : 1));
    });
    s.operation.async_run(timeout_at(s.b->wheel, deadline, s.result.recorder()));
    support::spin(s.b->wheel, 3ms);
    support::run_to_end(s.b->context);
    s.poll();
    BOOST_TEST(s.fired() == 0U);
    BOOST_TEST(s.b->wheel.stats().met == 1U);
  }
}

// A goes.

BOOST_AUTO_TEST_CASE(a_may_go_first_with_its_operation)
{
  in_all_places([](scene& s, place p) {
    asio::use_service<at_shutdown>(*s.a).act = [&] { s.operation.drop(); };
    s.start(p);
    s.a.reset();
    if (!is_under_way(p)) BOOST_TEST(s.books.outstanding == 0U);
    s.run_b();
    s.poll();
    BOOST_TEST(s.books.outstanding == 0U);
    s.b.reset();
    BOOST_TEST(s.result.pending());
    BOOST_TEST(s.fired() == (has_arrived(p) ? 1U : 0U));
  });
}

BOOST_AUTO_TEST_CASE(a_may_go_and_its_operation_after_it)
{
  // Without a strand, because Asio's must not outlive its context.
  for (const place p : all_places) {
    scene s(handler_in::a);
    s.start(p);
    s.a.reset();
    BOOST_TEST(s.books.outstanding == 1U);
    s.operation.drop();
    BOOST_TEST(s.books.outstanding == 0U);
    s.run_b();
    BOOST_TEST(s.result.pending());
  }
}

BOOST_AUTO_TEST_CASE(a_may_go_from_a_handler_of_b_behind_which_the_deadline_is_due)
{
  for (const handler_in h : {handler_in::a, handler_in::strand_of_c}) {
    scene s(h);
    asio::use_service<at_shutdown>(*s.a).act = [&] { s.operation.drop(); };
    s.b = std::make_unique<support::context_with_wheel>();
    const auto deadline = s.b->wheel.now() + 1ms;
    int later = 0;
    s.b->wheel.async_wait(deadline, [&](error_code) { s.a.reset(); });
    s.operation.async_run(timeout_at(
      s.b->wheel, deadline,
      asio::bind_allocator(support::booking_allocator<int>(s.books), s.result.recorder())));
    s.b->wheel.async_wait(deadline, [&](error_code ec) { later += !ec; });
    support::spin(s.b->wheel, 3ms);
    support::run_to_end(s.b->context);
    BOOST_TEST(later == 1);
    BOOST_TEST(s.result.pending());
    BOOST_TEST(s.books.outstanding == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_may_go_with_a_coroutine_that_has_a_deadline)
{
  for (const place p : {place::filed, place::due, place::on_its_way}) {
    auto a = std::make_unique<asio::io_context>();
    support::context_with_wheel b;
    const auto life = std::make_shared<int>();
    const auto deadline = b.wheel.now() + (p == place::filed ? 1h : 3ms);
    if (p == place::due)
      b.wheel.async_wait(deadline, [](error_code) { throw support::from_handler(); });
    asio::co_spawn(*a, receive(b.wheel, deadline, life), asio::detached);
    a->poll();
    BOOST_TEST(b.wheel.pending() == (p == place::due ? 2U : 1U));
    support::spin(b.wheel, 5ms);
    if (p == place::due)
      BOOST_CHECK_THROW(b.context.run(), support::from_handler);
    else
      b.context.poll();
    BOOST_TEST(life.use_count() == 2);
    a.reset();
    BOOST_TEST(life.use_count() == 1);
    support::run_to_end(b.context);
  }
}

// B goes.

BOOST_AUTO_TEST_CASE(b_may_go_first_and_the_operation_goes_on)
{
  in_all_places([](scene& s, place p) {
    s.start(p);
    s.b.reset();
    BOOST_TEST(s.books.outstanding == 1U);
    s.poll();
    BOOST_TEST(s.fired() == (has_arrived(p) || is_under_way(p) ? 1U : 0U));
    s.operation.complete({}, 7);
    s.poll();
    BOOST_TEST(s.result.succeeded(7));
    BOOST_TEST(s.books.outstanding == 0U);
  });
}

BOOST_AUTO_TEST_CASE(b_may_go_first_and_what_has_fired_is_reported)
{
  in_all_places([](scene& s, place p) {
    s.start(p);
    s.b.reset();
    s.operation.complete(operation_aborted);
    s.poll();
    BOOST_TEST(s.result.calls == 1);
    BOOST_TEST(s.result.error == report_of_abort(p));
    BOOST_TEST(s.books.outstanding == 0U);
  });
}

BOOST_AUTO_TEST_CASE(b_may_go_first_and_the_operation_ends_before_its_deadline_arrives)
{
  in_all_places([](scene& s, place p) {
    if (!has_arrived(p)) asio::post(s.caller, [&] { s.operation.complete({}, 7); });
    s.start(p);
    if (has_arrived(p)) s.operation.complete({}, 7);
    s.b.reset();
    s.poll();
    BOOST_TEST(s.result.succeeded(7));
    BOOST_TEST(s.fired() == (has_arrived(p) ? 1U : 0U));
    BOOST_TEST(s.books.outstanding == 0U);
  });
}

BOOST_AUTO_TEST_CASE(b_may_go_first_and_then_the_operation_dropped)
{
  in_all_places([](scene& s, place p) {
    s.start(p);
    s.b.reset();
    s.operation.drop();
    s.poll();
    BOOST_TEST(s.books.outstanding == 0U);
    BOOST_TEST(s.result.pending());
  });
}

BOOST_AUTO_TEST_CASE(b_may_go_first_and_the_operation_is_still_cancelled_from_outside)
{
  for (const bool obeys : {false, true}) {
    in_all_places([obeys](scene& s, place p) {
      s.start(p);
      s.b.reset();
      s.poll();
      s.operation.seen.clear();
      s.operation.obeys = obeys;
      s.signal.emit(cancellation_type::partial);
      BOOST_TEST((s.operation.seen == std::vector{cancellation_type::partial}));
      if (!obeys) s.operation.complete(operation_aborted);
      s.poll();
      BOOST_TEST(s.result.calls == 1);
      BOOST_TEST(s.books.outstanding == 0U);
    });
  }
}

BOOST_AUTO_TEST_CASE(b_may_go_first_and_then_a_with_its_operation)
{
  in_all_places([](scene& s, place p) {
    asio::use_service<at_shutdown>(*s.a).act = [&] { s.operation.drop(); };
    s.start(p);
    s.b.reset();
    s.a.reset();
    s.poll();
    BOOST_TEST(s.result.pending());
    BOOST_TEST(s.books.outstanding == 0U);
  });
}

BOOST_AUTO_TEST_CASE(a_may_go_and_the_deadline_comes_before_its_operation_ends)
{
  for (const place p : {place::filed, place::due, place::refused}) {
    scene s(handler_in::a);
    s.start(p);
    s.a.reset();
    s.run_b();  // the deadline would go to A
    BOOST_TEST(s.fired() == 0U);
    s.operation.drop();
    BOOST_TEST(s.books.outstanding == 0U);
    BOOST_TEST(s.result.pending());
  }
}

BOOST_AUTO_TEST_SUITE_END()
