// timeout_after on a whole coroutine: what co_spawn completes with is an exception_ptr.
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::awaitable;
using asio::cancellation_type;
using boost::system::system_error;
using support::context_with_wheel;

namespace {

/// Waits for longer than any deadline here, and throws what its wait was aborted with.
awaitable<void> request(int& begun)
{
  ++begun;
  asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
  co_await timer.async_wait(asio::use_awaitable);
}

awaitable<std::string> answer(std::string text)
{
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  co_return text;
}

/// Swallows the cancellation and does `then`.
template <class Then>
awaitable<int> obstinate(Then then)
{
  int begun = 0;
  try {
    co_await request(begun);
  } catch (const system_error&) {
  }
  co_return then();
}

/// What an exception says.
error_code code_of(const std::exception_ptr& e)
{
  if (!e) return {};
  try {
    std::rethrow_exception(e);
  } catch (const system_error& error) {
    return error.code();
  }
}

template <class T>
error_code code_of(std::future<T>& future)
{
  try {
    static_cast<void>(future.get());
  } catch (const system_error& error) {
    return error.code();
  }
  return {};
}

/// A coroutine on a wheel, and what its handler was called with.
struct spawned : context_with_wheel {
  using context_with_wheel::context_with_wheel;

  int begun = 0;
  int calls = 0;
  std::exception_ptr thrown;

  [[nodiscard]] auto recorder()
  {
    return [this](std::exception_ptr e) {
      ++calls;
      thrown = e;
    };
  }
  template <class Token>
  void spawn(Token token)
  {
    asio::co_spawn(context, request(begun), std::move(token));
  }
  /// Runs to the end: whether the coroutine ended once, with this code.
  [[nodiscard]] bool ends_with(const error_code& ec)
  {
    support::run_to_end(context);
    return calls == 1 && begun == 1 && code_of(thrown) == ec && wheel.pending() == 0;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(timeout_of_coroutine)

BOOST_AUTO_TEST_CASE(is_thrown_where_it_is_awaited)
{
  spawned c;
  error_code code;
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    try {
      co_await asio::co_spawn(c.context, request(c.begun), timeout_after(1ms));
    } catch (const system_error& e) {
      code = e.code();
    }
  });
  BOOST_TEST(code == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(is_not_in_the_way_of_a_result)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    BOOST_TEST(co_await asio::co_spawn(c.context, answer("yes"), timeout_after(1h)) == "yes");
    BOOST_TEST(c.wheel.pending() == 0U);
  });
}

BOOST_AUTO_TEST_CASE(comes_by_awaiting_tokens)
{
  spawned c;
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    const auto start = [&](auto token) {
      return asio::co_spawn(c.context, request(c.begun), std::move(token));
    };
    auto [a] = co_await start(timeout_after(1ms, asio::as_tuple(asio::use_awaitable)));
    auto [b] = co_await start(timeout_after(1ms, asio::as_tuple(asio::deferred)));
    auto [e] = co_await start(timeout_at(c.wheel, c.wheel.now(), asio::as_tuple(asio::deferred)));
    for (const auto& thrown : {a, b, e}) BOOST_TEST(code_of(thrown) == asio::error::timed_out);
    BOOST_CHECK_EXCEPTION(co_await start(timeout_after(1ms, asio::use_awaitable)), system_error,
                          [](const auto& x) { return x.code() == asio::error::timed_out; });
    auto deferred = start(timeout_after(1ms, asio::deferred));
    BOOST_CHECK_EXCEPTION(co_await std::move(deferred), system_error,
                          [](const auto& x) { return x.code() == asio::error::timed_out; });
  });
}

BOOST_AUTO_TEST_CASE(comes_to_callbacks_and_futures)
{
  spawned c;
  auto none = asio::co_spawn(c.context, request(c.begun), timeout_after(1ms, asio::use_future));
  auto text = asio::co_spawn(c.context, answer("yes"), timeout_after(1h, asio::use_future));
  support::run_to_end(c.context);
  BOOST_TEST(code_of(none) == asio::error::timed_out);
  BOOST_TEST(text.get() == "yes");
  c.begun = 0;
  c.spawn(timeout_after(1ms, c.recorder()));
  BOOST_TEST(c.calls == 0);
  BOOST_TEST(c.ends_with(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(is_an_abort_after_cancel_after)
{
  spawned c;
  c.spawn(cancel_after(1ms, c.recorder()));
  BOOST_TEST(c.ends_with(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(is_told_from_a_cancellation_by_others)
{
  spawned c;
  asio::cancellation_signal signal;
  c.spawn(timeout_after(1h, asio::bind_cancellation_slot(signal.slot(), c.recorder())));
  support::run_until(c.context, [&] { return c.begun == 1; });
  signal.emit(cancellation_type::terminal);
  BOOST_TEST(c.calls == 0);
  BOOST_TEST(c.ends_with(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(leaves_what_the_coroutine_throws_in_time)
{
  spawned c;
  const auto failing = [](const error_code& ec) -> awaitable<void> {
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    throw system_error(ec);
  };
  for (const error_code ec :
       {error_code(asio::error::operation_aborted), error_code(asio::error::eof)}) {
    asio::co_spawn(c.context, failing(ec), timeout_after(1h, c.recorder()));
    support::run_to_end(c.context);
    BOOST_TEST(code_of(c.thrown) == ec);
  }
}

// It was cut short, but has made something else of it: that is its result.
BOOST_AUTO_TEST_CASE(leaves_what_the_coroutine_makes_of_it)
{
  context_with_wheel c;
  const auto spawn = [&](auto then) {
    return asio::co_spawn(c.context, obstinate(then), timeout_after(1ms, asio::use_future));
  };
  auto returned = spawn([] { return 5; });
  auto other_code = spawn([]() -> int { throw system_error(asio::error::eof); });
  auto other_type = spawn([]() -> int { throw std::logic_error("mine"); });
  auto no_exception = spawn([]() -> int { throw 5; });
  support::run_to_end(c.context);
  BOOST_TEST(returned.get() == 5);
  BOOST_TEST(code_of(other_code) == asio::error::eof);
  BOOST_CHECK_THROW(other_type.get(), std::logic_error);
  BOOST_CHECK_THROW(no_exception.get(), int);
}

BOOST_AUTO_TEST_CASE(passes_a_filter_only_if_it_is_of_the_type_that_the_coroutine_takes)
{
  spawned c;
  c.spawn(timeout_after(1ms, cancellation_type::total, c.recorder()));
  support::run_until(c.context, [&] { return c.wheel.stats().expired == 1; });
  BOOST_TEST(c.calls == 0);

  error_code thrown;
  asio::co_spawn(
    c.context,
    [&]() -> awaitable<void> {
      co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
      asio::steady_timer timer(c.context, 1h);
      co_await timer.async_wait(asio::use_awaitable);
    },
    timeout_after(1ms, cancellation_type::total,
                  [&](std::exception_ptr e) { thrown = code_of(e); }));
  support::run_until(c.context, [&] { return !!thrown; });
  BOOST_TEST(thrown == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(of_the_inner_and_the_outer_deadline_are_told_apart)
{
  for (const bool inner_first : {false, true}) {
    spawned c;
    const wheel_timer_service::duration inner = inner_first ? 1ms : 1h;
    const wheel_timer_service::duration outer = inner_first ? 1h : 1ms;
    error_code inside;
    asio::co_spawn(
      c.context,
      [&]() -> awaitable<void> {
        try {
          co_await asio::co_spawn(c.context, request(c.begun), timeout_after(inner));
        } catch (const system_error& e) {
          inside = e.code();
          throw;
        }
      },
      timeout_after(outer, c.recorder()));
    BOOST_TEST(c.ends_with(asio::error::timed_out));
    BOOST_TEST(inside == (inner_first ? asio::error::timed_out : asio::error::operation_aborted));
  }
}

BOOST_AUTO_TEST_CASE(nests_as_a_token)
{
  spawned c;
  c.spawn(timeout_after(1h, cancel_after(2h, timeout_after(1ms, c.recorder()))));
  BOOST_TEST(c.ends_with(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(goes_with_other_operations_in_a_group_and_an_alternative)
{
  using namespace asio::experimental::awaitable_operators;
  namespace ex = asio::experimental;
  spawned c;
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    const auto start = [&](auto token) {
      return asio::co_spawn(c.context, request(c.begun), std::move(token));
    };
    auto [order, first, second] =
      co_await ex::make_parallel_group(start(timeout_after(1ms, asio::deferred)),
                                       start(timeout_after(1h, asio::deferred)))
        .async_wait(ex::wait_for_one(), asio::as_tuple(asio::use_awaitable));
    BOOST_TEST(order[0] == 0U);
    BOOST_TEST(code_of(first) == asio::error::timed_out);
    BOOST_TEST(code_of(second) == asio::error::operation_aborted);

    asio::steady_timer soon(c.context, 1ms);
    const auto won = co_await (start(timeout_after(1h, asio::use_awaitable)) ||
                               soon.async_wait(asio::use_awaitable));
    BOOST_TEST(won.index() == 1U);
    BOOST_TEST(c.wheel.pending() == 0U);
  });
}

// They throw asio::multiple_exceptions when both sides were aborted.
BOOST_AUTO_TEST_CASE(of_alternatives_is_a_timeout_though_they_throw_several_exceptions)
{
  using namespace asio::experimental::awaitable_operators;
  for (const bool both : {false, true}) {
    spawned c;
    asio::co_spawn(
      c.context,
      [&]() -> awaitable<void> {
        int other = 0;
        if (both)
          co_await (request(c.begun) && request(other));
        else
          co_await (request(c.begun) || request(other));
      },
      timeout_after(1ms, c.recorder()));
    BOOST_TEST(c.ends_with(asio::error::timed_out));
  }
}

BOOST_AUTO_TEST_CASE(that_was_refused_is_an_error_of_its_own)
{
  spawned c(support::with_limit(1));
  c.wheel.async_wait(1h, [](error_code) {});
  c.spawn(cancel_after(1h, c.recorder()));
  support::run_until(c.context, [&] { return c.calls == 1; });
  BOOST_TEST(code_of(c.thrown) == wheel_errc::too_many_pending);
}

BOOST_AUTO_TEST_CASE(calls_the_handler_through_its_executor)
{
  spawned c;
  const auto strand = asio::make_strand(c.context);
  bool there = false;
  c.spawn(timeout_after(1ms, asio::bind_executor(strand, [&](std::exception_ptr e) {
                          there = strand.running_in_this_thread();
                          c.recorder()(e);
                        })));
  BOOST_TEST(c.ends_with(asio::error::timed_out));
  BOOST_TEST(there);
}

// In Boost 1.81, co_spawn posts a pointer into what it has put into the slot.
BOOST_AUTO_TEST_CASE(may_end_before_a_cancellation_gets_there)
{
  asio::cancellation_signal signal;
  context_with_wheel c;
  asio::steady_timer timer(c.context, 1h);
  error_code ended;
  const auto wait = [&]() -> awaitable<void> { co_await timer.async_wait(asio::use_awaitable); };
  asio::co_spawn(
    c.context, wait(),
    timeout_after(1h, asio::bind_cancellation_slot(
                        signal.slot(), asio::bind_executor(c.context.get_executor(),
                                                           [&](const std::exception_ptr& e) {
                                                             ended = code_of(e);
                                                           }))));
  c.context.poll();
  timer.cancel();
  signal.emit(cancellation_type::terminal);
  c.context.restart();
  c.context.run();
  BOOST_TEST(ended == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(may_end_before_its_deadline_gets_there)
{
  asio::thread_pool pool(2);
  context_with_wheel c;
  const auto strand = asio::make_strand(pool);
  asio::steady_timer timer(strand, 1h);
  const auto wait = [&]() -> awaitable<void> { co_await timer.async_wait(asio::use_awaitable); };
  auto ended = asio::co_spawn(
    strand, wait(),
    timeout_after(c.wheel, 20ms, asio::bind_executor(c.context.get_executor(), asio::use_future)));
  asio::post(strand, [&] {  // puts the end of the wait, and what takes time, before the deadline
    timer.cancel();
    std::this_thread::sleep_for(5ms);
    asio::post(strand, [] { std::this_thread::sleep_for(20ms); });
    std::this_thread::sleep_for(40ms);
  });
  c.context.run();
  pool.join();
  BOOST_CHECK_THROW(ended.get(), system_error);
}

BOOST_AUTO_TEST_CASE(goes_with_its_context)
{
  const auto held = std::make_shared<int>(0);
  {
    spawned c;
    c.spawn(timeout_after(1h, [held](std::exception_ptr) { ++*held; }));
    c.context.poll();
    BOOST_TEST(c.begun == 1);
  }
  BOOST_TEST(held.use_count() == 1);
  BOOST_TEST(*held == 0);
}

BOOST_AUTO_TEST_CASE(meets_the_end_of_the_coroutine_on_other_threads)
{
  asio::thread_pool pool(2);
  context_with_wheel c;
  constexpr int coroutines = 300;
  std::atomic<int> ended{0};
  std::atomic<int> strange{0};
  auto work = asio::make_work_guard(c.context);
  std::thread runner([&] { c.context.run(); });
  for (int i = 0; i != coroutines; ++i) {
    const auto life = std::chrono::microseconds(i % 3 * 700);
    asio::co_spawn(
      asio::make_strand(pool),
      [life]() -> awaitable<int> {
        asio::steady_timer timer(co_await asio::this_coro::executor, life);
        co_await timer.async_wait(asio::use_awaitable);
        co_return 1;
      },
      timeout_after(c.wheel, 1ms, [&](std::exception_ptr e, int n) {
        const error_code ec = code_of(e);
        if (ec ? ec != asio::error::timed_out : n != 1) ++strange;
        ++ended;
      }));
  }
  BOOST_TEST(support::eventually([&] { return ended == coroutines; }));
  work.reset();
  pool.join();
  runner.join();
  BOOST_TEST(strange == 0);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
