// abandon_after and abandon_at: who is called when an operation does not listen, and what becomes
// of the operation.
#include <asio_wheel.hpp>
#include <asio_wheel/drop_in.hpp>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "support/ledger.hpp"
#include "support/manual_operation.hpp"
#include "support/own_executor.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::manual_operation;
using support::operation_on_wheel;
using support::result;

namespace {

/// An operation that hears a cancellation and goes on.
struct deaf_operation : operation_on_wheel {
  explicit deaf_operation(wheel_options options = {}) : operation_on_wheel(options)
  {
    operation.obeys = false;
  }

  /// Runs until the handler was called.
  void await_call()
  {
    support::run_until(context, [&] { return result.calls != 0; });
  }
  [[nodiscard]] std::uint64_t abandoned() const { return wheel.stats().abandoned; }
};

/// Completes with a pointer when told to, in any thread, and does not listen.
struct operation_with_result {
  template <class Token>
  auto async_run(Token&& token)
  {
    return asio::async_initiate<Token, void(error_code, std::shared_ptr<int>)>(
      [this](auto handler) { done.emplace(std::move(handler)); }, token);
  }

  std::optional<asio::any_completion_handler<void(error_code, std::shared_ptr<int>)>> done;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(abandoning_after)

BOOST_AUTO_TEST_CASE(calls_the_handler_of_an_operation_that_does_not_listen)
{
  deaf_operation c;
  c.operation.async_run(abandon_after(2ms, c.result.recorder()));
  c.await_call();
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  BOOST_TEST((c.operation.seen == std::vector{cancellation_type::terminal}));
  BOOST_TEST(c.operation.running());
  BOOST_TEST(c.abandoned() == 1U);
  BOOST_TEST(c.wheel.pending() == 0U);
  c.operation.complete({}, 5);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.calls == 1);
  BOOST_TEST(c.abandoned() == 0U);
}

BOOST_AUTO_TEST_CASE(has_the_overloads_of_timeout_after)
{
  const auto times_out = [](auto token, cancellation_type type) {
    deaf_operation c;
    c.operation.async_run(token(c)(c.result.recorder()));
    c.await_call();
    return c.result.failed(asio::error::timed_out) && c.operation.seen == std::vector{type};
  };
  const auto partial = cancellation_type::partial;
  const auto terminal = cancellation_type::terminal;
  const auto soon = [](auto& c) { return c.wheel.now() + 1ms; };
  BOOST_TEST(times_out([](auto&) { return abandon_after(1ms); }, terminal));
  BOOST_TEST(times_out([&](auto&) { return abandon_after(1ms, partial); }, partial));
  BOOST_TEST(times_out([](auto& c) { return abandon_after(c.wheel, 1ms); }, terminal));
  BOOST_TEST(times_out([&](auto& c) { return abandon_at(soon(c)); }, terminal));
  BOOST_TEST(times_out([&](auto& c) { return abandon_at(c.wheel, soon(c), partial); }, partial));
  BOOST_TEST(times_out(
    [&](auto& c) { return [&](auto h) { return abandon_at(c.wheel, soon(c), partial, h); }; },
    partial));
}

BOOST_AUTO_TEST_CASE(does_not_abandon_what_stops_when_it_is_asked)
{
  operation_on_wheel c;
  std::uint64_t abandoned = 1;
  c.operation.async_run(abandon_after(1ms, [&](error_code ec, std::size_t n) {
    abandoned = c.wheel.stats().abandoned;
    c.result.recorder()(ec, n);
  }));
  c.operation.obeys = false;
  c.operation.when_cancelled = [&] { c.operation.complete(asio::error::operation_aborted, 7); };
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  BOOST_TEST(c.result.size == 7U);
  BOOST_TEST(abandoned == 0U);
}

BOOST_AUTO_TEST_CASE(does_not_abandon_a_coroutine_that_stops_some_hops_later)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  std::shared_ptr<int> life = std::make_shared<int>();
  const auto inner = [](auto ex, std::shared_ptr<int>) -> asio::awaitable<void> {
    asio::steady_timer timer(ex, 1h);
    co_await timer.async_wait(asio::use_awaitable);
  };
  const auto outer = [&](std::shared_ptr<int> p) -> asio::awaitable<void> {
    co_await asio::co_spawn(strand, inner(strand, p), asio::use_awaitable);
  };
  error_code error;
  long living = 0;
  asio::co_spawn(c.context, outer(life), abandon_after(1ms, [&](std::exception_ptr e) {
                   living = life.use_count();
                   try {
                     std::rethrow_exception(e);
                   } catch (const system_error& thrown) {
                     error = thrown.code();
                   }
                 }));
  support::run_to_end(c.context);
  BOOST_TEST(error == asio::error::timed_out);
  BOOST_TEST(living == 1);
}

BOOST_AUTO_TEST_CASE(passes_on_a_result_that_comes_in_time)
{
  deaf_operation c;
  c.operation.async_run(abandon_after(1h, c.result.recorder()));
  c.operation.complete({}, 5);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.succeeded(5));
}

BOOST_AUTO_TEST_CASE(passes_on_a_success_right_after_the_cancellation)
{
  deaf_operation c;
  c.operation.when_cancelled = [&] { c.operation.complete({}, 5); };
  c.operation.async_run(abandon_after(1ms, c.result.recorder()));
  support::run_to_end(c.context);
  BOOST_TEST(c.result.succeeded(5));
}

BOOST_AUTO_TEST_CASE(destroys_a_late_result_where_it_comes)
{
  context_with_wheel c;
  operation_with_result operation;
  bool called = false;
  operation.async_run(abandon_after(c.wheel, 1ms, [&](error_code ec, std::shared_ptr<int> p) {
    called = ec == asio::error::timed_out && !p;
  }));
  support::run_until(c.context, [&] { return called; });
  auto late = std::make_shared<int>();
  std::thread([&, p = std::weak_ptr<int>(late)] {
    (*std::move(operation.done))(error_code(), std::move(late));
    BOOST_TEST(p.expired());
  }).join();
  BOOST_TEST(c.wheel.stats().abandoned == 0U);
}

BOOST_AUTO_TEST_CASE(lets_the_handler_go_with_its_call)
{
  deaf_operation c;
  support::ledger books;
  auto life = std::make_shared<int>();
  auto handler = [&, life](error_code ec, std::size_t n) { c.result.recorder()(ec, n); };
  c.operation.async_run(abandon_after(
    1ms, asio::bind_allocator(support::booking_allocator<int>(books), std::move(handler))));
  BOOST_TEST(life.use_count() == 2);
  c.await_call();
  BOOST_TEST(c.operation.running());
  BOOST_TEST(life.use_count() == 1);
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_CASE(ends_the_count_when_the_operation_is_destroyed)
{
  deaf_operation c;
  c.operation.async_run(abandon_after(1ms, c.result.recorder()));
  c.await_call();
  c.operation.drop();
  BOOST_TEST(c.abandoned() == 0U);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.calls == 1);
}

BOOST_AUTO_TEST_CASE(survives_its_wheel)
{
  asio::io_context other;
  manual_operation operation(other.get_executor());
  operation.obeys = false;
  for (const bool before_deadline : {false, true}) {
    result r;
    std::optional<context_with_wheel> c(std::in_place);
    operation.async_run(abandon_after(c->wheel, before_deadline ? 1000h : 1ms, r.recorder()));
    if (!before_deadline) {
      support::eventually([&] {
        for (auto* context : {&c->context, &other}) {
          context->restart();
          context->poll();
        }
        return !r.pending();
      });
    }
    c.reset();
    BOOST_TEST(operation.running());
    operation.complete({}, 3);
    support::run_to_end(other);
    BOOST_TEST((before_deadline ? r.succeeded(3) : r.failed(asio::error::timed_out)));
  }
}

BOOST_AUTO_TEST_CASE(passes_on_cancellations_until_the_handler_is_called)
{
  deaf_operation c;
  asio::cancellation_signal signal;
  c.operation.async_run(
    abandon_after(20ms, asio::bind_cancellation_slot(signal.slot(), c.result.recorder())));
  signal.emit(cancellation_type::total);
  BOOST_TEST(c.operation.seen.size() == 1U);
  c.await_call();
  BOOST_TEST(c.operation.seen.size() == 2U);
  signal.emit(cancellation_type::total);
  BOOST_TEST(c.operation.seen.size() == 2U);
  c.operation.complete(asio::error::operation_aborted);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(abandons_with_what_cancel_all_and_a_refusal_report)
{
  deaf_operation c(support::with_limit(1));
  c.operation.async_run(abandon_after(1h, c.result.recorder()));
  manual_operation second(c.context.get_executor());
  second.obeys = false;
  result refused;
  second.async_run(abandon_after(1h, refused.recorder()));
  support::run_until(c.context, [&] { return !refused.pending(); });
  BOOST_TEST(refused.failed(wheel_errc::too_many_pending));
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  c.await_call();
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  BOOST_TEST(c.abandoned() == 2U);
}

BOOST_AUTO_TEST_CASE(throws_in_a_coroutine)
{
  deaf_operation c;
  c.operation.obeys = false;
  bool destroyed_late = false;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto [ec, n] =
      co_await c.operation.async_run(abandon_after(1ms, asio::as_tuple(asio::use_awaitable)));
    BOOST_TEST(ec == asio::error::timed_out);
    BOOST_TEST(n == 0U);
    c.operation.complete({}, 1);
    BOOST_CHECK_THROW(co_await c.operation.async_run(abandon_after(1ms, asio::use_awaitable)),
                      system_error);
    destroyed_late = true;
  });
  BOOST_TEST(destroyed_late);
  c.operation.drop();
}

BOOST_AUTO_TEST_CASE(leaves_a_coroutine_that_cannot_be_cancelled)
{
  deaf_operation c;
  const auto request = [](manual_operation& o, std::shared_ptr<int> data) -> asio::awaitable<int> {
    co_await o.async_run(asio::use_awaitable);
    co_return *data;
  };
  auto data = std::make_shared<int>(7);
  std::optional<int> value;
  asio::co_spawn(c.context, request(c.operation, data),
                 abandon_after(1ms, [&](std::exception_ptr e, int n) {
                   BOOST_TEST((e != nullptr));
                   value = n;
                 }));
  support::run_until(c.context, [&] { return value.has_value(); });
  BOOST_TEST(*value == 0);
  BOOST_TEST(data.use_count() == 2);
  c.operation.complete({});
  support::run_to_end(c.context);
  BOOST_TEST(data.use_count() == 1);
  BOOST_TEST(c.abandoned() == 0U);
}

BOOST_AUTO_TEST_CASE(keeps_a_future)
{
  deaf_operation c;
  std::future<std::size_t> future = c.operation.async_run(abandon_after(1ms, asio::use_future));
  support::run_to_end(c.context);
  // The handlers of use_future run in a thread of Asio's own.
  BOOST_REQUIRE((future.wait_for(support::patience) == std::future_status::ready));
  BOOST_CHECK_THROW(future.get(), system_error);
  c.operation.drop();
}

BOOST_AUTO_TEST_CASE(calls_an_erased_handler_on_its_executor)
{
  deaf_operation c;
  const auto strand = asio::make_strand(c.context);
  bool there = false;
  const auto handler = [&](error_code ec, std::size_t) {
    there = strand.running_in_this_thread() && ec == asio::error::timed_out;
    ++c.result.calls;
  };
  using erased = asio::any_completion_handler<void(error_code, std::size_t)>;
  c.operation.async_run(abandon_after(1ms, erased(asio::bind_executor(strand, handler))));
  c.await_call();
  BOOST_TEST(there);
  c.operation.drop();

  c.result.calls = 0;
  there = false;
  manual_operation on_strand(strand);
  on_strand.obeys = false;
  on_strand.async_run(abandon_after(1ms, erased(handler)));
  c.await_call();
  BOOST_TEST(there);

  c.result.calls = 0;
  there = false;
  c.operation.async_run(
    abandon_after(1ms, asio::bind_executor(asio::any_completion_executor(strand), handler)));
  c.await_call();
  BOOST_TEST(there);
  c.operation.drop();
}

BOOST_AUTO_TEST_CASE(calls_the_handler_once_if_its_executor_refuses_or_drops_a_function)
{
  for (const bool drops : {false, true}) {
    for (int at = 0; at < 14; ++at) {
      deaf_operation c;
      int asked = 0;
      const std::function<bool()> takes = [&] {
        if (asked++ != at || c.result.calls != 0) return true;
        if (!drops) throw std::bad_alloc();
        return false;
      };
      const support::own_executor ex(c.context.get_executor(), takes);
      auto life = std::make_shared<int>();
      c.operation.async_run(abandon_after(
        1ms, asio::bind_executor(
               ex, [&, life](error_code ec, std::size_t n) { c.result.recorder()(ec, n); })));
      support::run_to_end(c.context);
      BOOST_TEST(c.result.calls <= 1);
      if (!drops) BOOST_TEST(c.result.failed(asio::error::timed_out));
      asked = at + 1;
      if (c.operation.running()) c.operation.complete({}, 1);
      support::run_to_end(c.context);
      if (!drops) BOOST_TEST(c.result.calls == 1);
      BOOST_TEST(life.use_count() == 1);
      BOOST_TEST(c.abandoned() == 0U);
    }
  }
}

BOOST_AUTO_TEST_CASE(is_destroyed_in_any_order)
{
  for (const bool operation_first : {false, true}) {
    auto life = std::make_shared<int>();
    std::optional<context_with_wheel> c(std::in_place);
    std::optional<manual_operation> operation(std::in_place, c->context.get_executor());
    operation->obeys = false;
    int calls = 0;
    operation->async_run(abandon_after(1ms, [&calls, life](error_code, std::size_t) { ++calls; }));
    support::run_until(c->context, [&] { return calls == 1; });
    if (operation_first) operation.reset();
    c.reset();
    operation.reset();
    BOOST_TEST(life.use_count() == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(a_timer_as_the_place)

BOOST_AUTO_TEST_CASE(keeps_the_deadlines_of_the_whole_family)
{
  context_with_wheel c;
  asio::io_context other;
  const auto ends_with = [&](auto code, auto token) {
    manual_operation o(other.get_executor());
    result r;
    o.async_run(token(r.recorder()));
    BOOST_TEST(c.wheel.pending() == 1U);
    for (int i = 0; i < 1000 && r.pending(); ++i) {
      c.context.restart();
      c.context.run_for(1ms);
      other.restart();
      other.run_for(1ms);
    }
    return r.failed(code);
  };
  const auto partial = cancellation_type::partial;
  wheel_timer a(c.wheel);
  drop_in::steady_timer b(c.context);
  drop_in::system_timer d(c.context.get_executor());
  using asio::error::operation_aborted;
  using asio::error::timed_out;
  const auto system_soon = [] { return std::chrono::system_clock::now() + 1ms; };
  BOOST_TEST(ends_with(operation_aborted, [&](auto h) { return cancel_after(a, 1ms, h); }));
  BOOST_TEST(
    ends_with(operation_aborted, [&](auto h) { return cancel_after(b, 1ms, partial, h); }));
  BOOST_TEST(ends_with(operation_aborted, [&](auto h) { return cancel_after(d, 1ms)(h); }));
  BOOST_TEST(ends_with(operation_aborted,
                       [&](auto h) { return cancel_at(a, wheel_timer::clock_type::now(), h); }));
  BOOST_TEST(ends_with(operation_aborted, [&](auto h) { return cancel_at(d, system_soon(), h); }));
  BOOST_TEST(ends_with(timed_out, [&](auto h) { return timeout_after(a, 1ms, h); }));
  BOOST_TEST(ends_with(timed_out, [&](auto h) { return timeout_at(d, system_soon(), h); }));
  BOOST_TEST(ends_with(timed_out, [&](auto h) { return abandon_after(b, 1ms, h); }));
  BOOST_TEST(
    ends_with(timed_out, [&](auto h) { return abandon_at(d, system_soon(), partial)(h); }));
}

BOOST_AUTO_TEST_CASE(keeps_its_expiry_and_its_waits)
{
  operation_on_wheel c;
  wheel_timer timer(c.wheel, 1h);
  const auto expiry = timer.expiry();
  c.operation.async_run(timeout_after(timer, 1ms, c.result.recorder()));
  support::run_until(c.context, [&] { return !c.result.pending(); });
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  BOOST_TEST((timer.expiry() == expiry));
}

BOOST_AUTO_TEST_CASE(takes_never_of_its_own_clock)
{
  operation_on_wheel c;
  drop_in::system_timer timer(c.wheel);
  c.operation.async_run(
    cancel_at(timer, drop_in::system_timer::time_point::max(), c.result.recorder()));
  BOOST_TEST(!c.wheel.next_expiry());
  c.operation.complete({}, 1);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.succeeded(1));
}

BOOST_AUTO_TEST_SUITE_END()
