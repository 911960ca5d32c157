// cancel_after and cancel_at: when and how an operation is cancelled, and what its result is.
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/ledger.hpp"
#include "support/manual_operation.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/socket_pair.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::manual_operation;
using support::operation_on_wheel;
using support::outcome;
using support::result;

BOOST_AUTO_TEST_SUITE(cancelling_after)

BOOST_AUTO_TEST_CASE(an_operation_that_is_in_time_keeps_its_result)
{
  operation_on_wheel c;
  c.operation.async_run(cancel_after(1h, c.result.recorder()));
  BOOST_TEST(c.wheel.pending() == 1U);
  asio::post(c.context, [&] { c.operation.complete({}, 7); });
  support::run_to_end(c.context);
  BOOST_TEST(c.result.succeeded(7));
  BOOST_TEST(c.operation.seen.empty());
}

BOOST_AUTO_TEST_CASE(an_operation_that_is_late_is_cancelled)
{
  operation_on_wheel c;
  const auto begin = c.wheel.now();
  c.operation.async_run(cancel_after(2ms, c.result.recorder()));
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  BOOST_TEST((c.operation.seen == std::vector{cancellation_type::terminal}));
  BOOST_TEST((c.wheel.now() - begin >= 2ms));
}

BOOST_AUTO_TEST_CASE(cancel_at_cancels_at_that_time)
{
  operation_on_wheel c;
  const auto deadline = c.wheel.now() + 2ms;
  c.operation.async_run(cancel_at(deadline, c.result.recorder()));
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  BOOST_TEST((c.wheel.now() >= deadline));
}

BOOST_AUTO_TEST_CASE(cancel_after_emits_the_given_type)
{
  for (const auto type :
       {cancellation_type::terminal, cancellation_type::partial, cancellation_type::total}) {
    operation_on_wheel c;
    c.operation.async_run(cancel_after(1ms, type, c.result.recorder()));
    support::run_to_end(c.context);
    BOOST_TEST((c.operation.seen == std::vector{type}));
  }
}

BOOST_AUTO_TEST_CASE(a_socket_is_read_until_the_deadline)
{
  context_with_wheel c;
  support::pair_socket reader(c.context);
  support::pair_socket writer(c.context);
  support::connect_pair(reader, writer);
  char data[16];
  result late;
  asio::async_read(reader, asio::buffer(data), cancel_after(2ms, late.recorder()));
  asio::write(writer, asio::buffer("abc", 3));
  support::run_to_end(c.context);
  BOOST_TEST(late.failed(asio::error::operation_aborted));
  BOOST_TEST(late.size == 3U);

  result in_time;
  asio::write(writer, asio::buffer("defg", 4));
  reader.async_read_some(asio::buffer(data), cancel_after(1h, in_time.recorder()));
  support::run_to_end(c.context);
  BOOST_TEST(in_time.succeeded(4));
}

BOOST_AUTO_TEST_CASE(an_operation_that_ignores_the_deadline_keeps_its_result)
{
  operation_on_wheel c;
  c.operation.obeys = false;
  c.operation.async_run(cancel_after(1ms, c.result.recorder()));
  c.await_cancellations(1);
  BOOST_TEST(c.result.pending());
  c.operation.complete({}, 9);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.succeeded(9));
}

BOOST_AUTO_TEST_CASE(a_delay_of_zero_fires_at_once_but_not_inline)
{
  for (const auto delay : {0ms, -1ms, -3600000ms}) {
    operation_on_wheel c;
    c.operation.async_run(cancel_after(delay, c.result.recorder()));
    BOOST_TEST(c.operation.seen.empty());
    support::run_to_end(c.context);
    BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  }
  operation_on_wheel c;
  c.operation.async_run(cancel_at(time_point::min(), c.result.recorder()));
  BOOST_TEST(c.operation.seen.empty());
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(the_longest_time_is_no_deadline)
{
  operation_on_wheel c;
  c.operation.async_run(cancel_after(duration::max(), c.result.recorder()));
  manual_operation other(c.context.get_executor());
  result of_other;
  other.async_run(cancel_at(time_point::max(), of_other.recorder()));
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.wheel.stats().started == 0U);
  c.operation.complete({}, 1);
  other.complete({}, 2);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.succeeded(1));
  BOOST_TEST(of_other.succeeded(2));
}

BOOST_AUTO_TEST_CASE(cancel_after_finds_the_wheel_of_the_operations_executor)
{
  context_with_wheel c;
  context_with_wheel other;
  manual_operation on_strand(asio::make_strand(c.context));
  result r;
  on_strand.async_run(cancel_after(1h, r.recorder()));
  BOOST_TEST(c.wheel.pending() == 1U);
  on_strand.drop();

  on_strand.async_run(cancel_after(other.wheel, 1h, cancellation_type::partial, r.recorder()));
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(other.wheel.pending() == 1U);
  on_strand.drop();
  on_strand.async_run(cancel_at(other.wheel, other.wheel.now() + 1h, r.recorder()));
  BOOST_TEST(other.wheel.pending() == 1U);
  on_strand.drop();
  BOOST_TEST(other.wheel.pending() == 0U);
  BOOST_TEST(r.pending());
}

BOOST_AUTO_TEST_CASE(cancel_after_makes_a_wheel_where_there_is_none)
{
  asio::io_context context;
  outcome done;
  asio::steady_timer timer(context, 1h);
  timer.async_wait(cancel_after(1ms, done.recorder()));
  BOOST_TEST(asio::has_service<wheel_timer_service>(context));
  support::run_to_end(context);
  BOOST_TEST(done.aborted());
}

BOOST_AUTO_TEST_CASE(cancel_after_finds_the_wheel_of_a_context_at_the_place_of_one_that_is_gone)
{
  alignas(context_with_wheel) std::byte place[sizeof(context_with_wheel)];
  for (int i = 0; i < 2; ++i) {
    auto* const c = ::new (place) context_with_wheel;
    outcome done;
    asio::steady_timer timer(c->context, 1h);
    timer.async_wait(cancel_after(1ms, done.recorder()));
    BOOST_TEST(c->wheel.pending() == 1U);
    support::run_to_end(c->context);
    BOOST_TEST(done.aborted());
    timer = asio::steady_timer(asio::system_executor());
    std::destroy_at(c);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(operation_with_deadline)

BOOST_AUTO_TEST_CASE(has_no_deadline_any_more_when_its_handler_runs)
{
  operation_on_wheel c;
  std::optional<std::size_t> pending;
  c.operation.async_run(
    cancel_after(1h, [&](error_code, std::size_t) { pending = c.wheel.pending(); }));
  asio::post(c.context, [&] { c.operation.complete({}); });
  support::run_to_end(c.context);
  BOOST_TEST(pending.value() == 0U);
  BOOST_TEST(c.wheel.stats().met == 1U);
}

BOOST_AUTO_TEST_CASE(takes_no_hop_of_its_own)
{
  // Each handler starts the next operation, so that the driver has nothing to do in between.
  context_with_wheel c;
  c.wheel.async_wait(time_point::max(), [](error_code) {});
  c.context.poll();
  struct chain {
    asio::io_context& context;
    int left;
    void operator()() const
    {
      if (left > 0) asio::post(context, cancel_after(1h, chain{context, left - 1}));
    }
  };
  asio::post(c.context, chain{c.context, 100});
  // The first deadline moves the driver's wake-up, and the end of the last one moves it back.
  BOOST_TEST(c.context.poll() <= 101U + 10U);
  BOOST_TEST(c.wheel.stats().started == 101U);
}

BOOST_AUTO_TEST_CASE(runs_its_handler_where_that_belongs)
{
  for (const auto delay : {1ms, 3600000ms}) {
    operation_on_wheel c;
    const auto strand = asio::make_strand(c.context);
    bool there = false;
    c.operation.async_run(cancel_after(
      delay, asio::bind_executor(
               strand, [&](error_code, std::size_t) { there = strand.running_in_this_thread(); })));
    if (delay > 1s) asio::post(c.context, [&] { c.operation.complete({}); });
    support::run_to_end(c.context);
    BOOST_TEST(there);
  }
}

BOOST_AUTO_TEST_CASE(is_cancelled_on_the_executor_of_its_handler)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  manual_operation on_strand(strand);
  manual_operation on_context(c.context.get_executor());
  int there = 0;
  for (manual_operation* o : {&on_strand, &on_context})
    o->when_cancelled = [&] { there += strand.running_in_this_thread() ? 1 : 0; };
  result by_default;
  result bound;
  on_strand.async_run(cancel_after(1ms, by_default.recorder()));
  on_context.async_run(cancel_after(1ms, asio::bind_executor(strand, bound.recorder())));
  support::run_to_end(c.context);
  BOOST_TEST(there == 2);
  BOOST_TEST(by_default.failed(asio::error::operation_aborted));
  BOOST_TEST(bound.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(is_one_allocation_which_is_free_before_the_handler)
{
  for (const auto delay : {1ms, 3600000ms}) {
    context_with_wheel c;
    support::ledger books;
    std::optional<std::size_t> held;
    asio::steady_timer timer(c.context, 5ms);
    timer.async_wait(
      cancel_after(delay, asio::bind_allocator(support::booking_allocator<void>(books),
                                               [&](error_code) { held = books.outstanding; })));
    // One wait is the timer's own.
    BOOST_TEST(books.taken == 2U);
    support::run_to_end(c.context);
    BOOST_TEST(held.value() == 0U);
    BOOST_TEST(books.taken == 2U);
  }
}

BOOST_AUTO_TEST_CASE(frees_its_memory_before_a_handler_that_owns_the_allocator)
{
  struct owner {
    using allocator_type = support::booking_allocator<void>;
    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(*books); }
    void operator()(error_code) const { *called = true; }
    std::shared_ptr<support::ledger> books;
    bool* called;
  };
  for (const auto delay : {1ms, 3600000ms}) {
    context_with_wheel c;
    bool called = false;
    asio::steady_timer timer(c.context, 3ms);
    timer.async_wait(cancel_after(delay, owner{std::make_shared<support::ledger>(), &called}));
    support::run_to_end(c.context);
    BOOST_TEST(called);
  }
}

BOOST_AUTO_TEST_CASE(hears_its_own_slot_in_every_type)
{
  for (const auto type : {cancellation_type::terminal, cancellation_type::partial,
                          cancellation_type::total, cancellation_type::all}) {
    operation_on_wheel c;
    asio::cancellation_signal signal;
    c.operation.async_run(
      cancel_after(1h, asio::bind_cancellation_slot(signal.slot(), c.result.recorder())));
    signal.emit(cancellation_type::none);
    BOOST_TEST(c.operation.seen.empty());
    signal.emit(type);
    BOOST_TEST(c.result.pending());
    support::run_to_end(c.context);
    BOOST_TEST((c.operation.seen == std::vector{type}));
    BOOST_TEST(c.result.failed(asio::error::operation_aborted));
    signal.emit(type);
    BOOST_TEST(c.operation.seen.size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(hears_its_slot_and_then_its_deadline)
{
  operation_on_wheel c;
  c.operation.obeys = false;
  asio::cancellation_signal signal;
  c.operation.async_run(
    cancel_after(1ms, asio::bind_cancellation_slot(signal.slot(), c.result.recorder())));
  signal.emit(cancellation_type::total);
  c.await_cancellations(2);
  c.operation.complete(asio::error::operation_aborted);
  support::run_to_end(c.context);
  BOOST_TEST(
    (c.operation.seen == std::vector{cancellation_type::total, cancellation_type::terminal}));
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(is_cancelled_from_another_thread)
{
  context_with_wheel c;
  asio::steady_timer timer(c.context, 1h);
  asio::cancellation_signal signal;
  outcome done;
  timer.async_wait(cancel_after(1h, asio::bind_cancellation_slot(signal.slot(), done.recorder())));
  {
    const support::running_threads thread(c.context, 1);
    signal.emit(cancellation_type::terminal);
  }
  BOOST_TEST(done.aborted());
}

BOOST_AUTO_TEST_CASE(does_without_a_signal_that_went_first)
{
  operation_on_wheel c;
  auto signal = std::make_unique<asio::cancellation_signal>();
  c.operation.async_run(
    cancel_after(1h, asio::bind_cancellation_slot(signal->slot(), c.result.recorder())));
  signal.reset();
  c.operation.complete({}, 3);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.succeeded(3));
}

BOOST_AUTO_TEST_CASE(is_destroyed_with_its_context)
{
  for (const auto delay : {0ms, 3600000ms}) {
    asio::cancellation_signal signal;
    support::ledger books;
    {
      context_with_wheel c;
      support::pair_socket reader(c.context);
      support::pair_socket writer(c.context);
      support::connect_pair(reader, writer);
      char data[4];
      reader.async_read_some(
        asio::buffer(data),
        cancel_after(delay,
                     asio::bind_cancellation_slot(
                       signal.slot(), asio::bind_allocator(support::booking_allocator<void>(books),
                                                           [](error_code, std::size_t) {
                                                             BOOST_TEST(false, "called");
                                                           }))));
      asio::steady_timer timer(c.context, 1h);
      timer.async_wait(cancel_after(delay, [](error_code) { BOOST_TEST(false, "called"); }));
      asio::post(c.context, cancel_after(delay, [] { BOOST_TEST(false, "called"); }));
    }
    BOOST_TEST(books.outstanding == 0U);
    signal.emit(cancellation_type::terminal);
  }
}

BOOST_AUTO_TEST_CASE(goes_on_without_the_context_of_its_wheel)
{
  asio::io_context context;
  manual_operation operation(context.get_executor());
  result r;
  result late;
  auto other = std::make_unique<context_with_wheel>();
  operation.async_run(cancel_after(other->wheel, 1h, r.recorder()));
  manual_operation cut_short(context.get_executor());
  cut_short.obeys = false;
  cut_short.async_run(cancel_after(other->wheel, 0ms, late.recorder()));
  support::run_until(context, [&] {
    other->context.poll();
    asio::post(context, [] {});
    return !cut_short.seen.empty();
  });
  other.reset();
  operation.complete({}, 5);
  cut_short.complete({}, 6);
  support::run_to_end(context);
  BOOST_TEST(r.succeeded(5));
  BOOST_TEST(late.succeeded(6));
}

BOOST_AUTO_TEST_CASE(may_end_the_context_of_its_wheel_in_its_handler)
{
  asio::io_context context;
  manual_operation operation(context.get_executor());
  auto other = std::make_unique<context_with_wheel>();
  bool called = false;
  operation.async_run(cancel_after(other->wheel, 1h, [&](error_code, std::size_t) {
    other.reset();
    called = true;
  }));
  operation.complete({});
  support::run_to_end(context);
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(that_completes_while_it_is_initiated_is_not_lost)
{
  context_with_wheel c;
  bool called = false;
  asio::dispatch(c.context,
                 [&] { asio::dispatch(c.context, cancel_after(1h, [&] { called = true; })); });
  support::run_to_end(c.context);
  BOOST_TEST(called);
  BOOST_TEST(c.wheel.stats().started == 0U);
}

BOOST_AUTO_TEST_CASE(that_completes_while_it_is_initiated_does_so_with_its_signature)
{
  struct overloaded_handler {
    std::string* called;

    void operator()(error_code, int) const { *called = "int"; }
    void operator()(error_code, double) const { *called = "double"; }
  };
  context_with_wheel c;
  std::string called;
  const auto operation = [](auto handler) { std::move(handler)(error_code(), 2.5); };
  auto token = cancel_after(c.wheel, 1h, overloaded_handler{&called});
  asio::async_initiate<decltype(token), void(error_code, int), void(error_code, double)>(operation,
                                                                                         token);
  support::run_to_end(c.context);
  BOOST_TEST(called == "double");
}

BOOST_AUTO_TEST_CASE(that_cannot_be_initiated_leaves_nothing)
{
  context_with_wheel c;
  support::ledger books;
  const auto failing = [](auto) { throw std::runtime_error("no"); };
  auto token = cancel_after(
    c.wheel, 1h, asio::bind_allocator(support::booking_allocator<void>(books), [](error_code) {}));
  BOOST_CHECK_THROW((asio::async_initiate<decltype(token), void(error_code)>(failing, token)),
                    std::runtime_error);
  BOOST_TEST(books.taken == 1U);
  BOOST_TEST(books.outstanding == 0U);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(whose_deadline_is_refused_is_cancelled_and_says_so)
{
  operation_on_wheel c(support::with_limit(1));
  c.wheel.async_wait(1h, [](error_code) {});
  c.operation.async_run(cancel_after(1h, c.result.recorder()));
  BOOST_TEST(c.operation.seen.empty());
  support::run_until(c.context, [&] { return !c.result.pending(); });
  BOOST_TEST(c.result.failed(wheel_errc::too_many_pending));
  BOOST_TEST(c.wheel.stats().rejected == 1U);
  c.wheel.cancel_all();
}

BOOST_AUTO_TEST_CASE(makes_room_for_the_next_under_a_limit)
{
  operation_on_wheel c(support::with_limit(1));
  for (int i = 0; i < 3; ++i) {
    result r;
    c.operation.async_run(cancel_after(1h, r.recorder()));
    c.operation.complete({}, 1);
    support::run_to_end(c.context);
    BOOST_TEST(r.succeeded(1));
  }
}

BOOST_AUTO_TEST_CASE(ends_with_all_waits_of_its_wheel)
{
  operation_on_wheel c;
  c.operation.async_run(cancel_after(1h, c.result.recorder()));
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(lets_run_return_at_once_when_it_is_done)
{
  operation_on_wheel c;
  c.operation.async_run(
    cancel_after(1h, [](error_code, std::size_t) { throw std::runtime_error("handler"); }));
  c.operation.complete({});
  BOOST_CHECK_THROW(support::run_to_end(c.context), std::runtime_error);
  const auto begin = std::chrono::steady_clock::now();
  support::run_to_end(c.context);
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 10s));
}

BOOST_AUTO_TEST_SUITE_END()
