// Parity of completion tokens: each way in which a wait can complete.
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/consign.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using boost::system::system_error;
using support::every_timer;
using support::outcome;

namespace {

bool says_aborted(const system_error& e)
{
  return e.code() == asio::error::operation_aborted;
}

bool is_ready(const std::future<void>& f)
{
  return f.wait_for(0s) == std::future_status::ready;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(callbacks)

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_move_only, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  outcome wait;
  timer.async_wait([owned = std::make_unique<int>(7), &wait](error_code ec) {
    wait.recorder()(ec);
    BOOST_TEST(*owned == 7);
  });
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_an_lvalue_that_stays_usable, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  int calls = 0;
  const auto handler = [&calls](const error_code& ec) { calls += ec ? 0 : 1; };
  timer.async_wait(handler);
  timer.async_wait(handler);
  support::run_to_end(context);
  BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(return_nothing_to_the_caller, Timer, every_timer)
{
  using result = decltype(std::declval<Timer&>().async_wait(outcome{}.recorder()));
  BOOST_TEST(std::is_void_v<result>);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(futures)

BOOST_AUTO_TEST_CASE_TEMPLATE(become_ready_at_expiry, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 2ms);
  std::future<void> done = timer.async_wait(asio::use_future);
  BOOST_TEST(!is_ready(done));
  support::run_to_end(context);
  BOOST_REQUIRE(is_ready(done));
  BOOST_CHECK_NO_THROW(done.get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(throw_when_cancelled, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  std::future<void> done = timer.async_wait(asio::use_future);
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
  BOOST_REQUIRE(is_ready(done));
  BOOST_CHECK_EXCEPTION(done.get(), system_error, says_aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(are_broken_when_the_context_goes, Timer, every_timer)
{
  std::future<void> done;
  {
    asio::io_context context;
    auto timer = std::make_shared<Timer>(context, 1h);
    done = timer->async_wait(asio::consign(asio::use_future, timer));
    timer.reset();
    context.poll();
    BOOST_TEST(!is_ready(done));
  }
  BOOST_REQUIRE(is_ready(done));
  BOOST_CHECK_THROW(done.get(), std::future_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(can_carry_what_a_function_returns, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  std::future<bool> aborted = timer.async_wait(
    asio::use_future([](error_code ec) { return ec == asio::error::operation_aborted; }));
  timer.cancel();
  support::run_to_end(context);
  BOOST_TEST(aborted.get());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(coroutines)

BOOST_AUTO_TEST_CASE_TEMPLATE(resume_at_expiry, Timer, every_timer)
{
  asio::io_context context;
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    Timer timer(context, 2ms);
    co_await timer.async_wait(asio::use_awaitable);
    BOOST_TEST((std::chrono::steady_clock::now() >= timer.expiry()));
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(throw_from_co_await_when_cancelled, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  const auto waiting = [&]() -> asio::awaitable<void> {
    asio::post(context, [&] { BOOST_TEST(timer.cancel() == 1U); });
    co_await timer.async_wait(asio::use_awaitable);
  };
  BOOST_CHECK_EXCEPTION(support::run_coroutine(context, waiting), system_error, says_aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(get_the_error_as_a_tuple, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  error_code ec;
  asio::co_spawn(
    context,
    [&]() -> asio::awaitable<void> {
      std::tie(ec) = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    },
    asio::detached);
  context.poll();
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(ec == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(get_the_error_redirected, Timer, every_timer)
{
  asio::io_context context;
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    Timer timer(context, 1ms);
    error_code ec = asio::error::fault;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    BOOST_TEST(!ec);
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(can_await_a_deferred_wait, Timer, every_timer)
{
  asio::io_context context;
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    Timer timer(context, 1ms);
    co_await timer.async_wait(asio::deferred);
    BOOST_TEST((std::chrono::steady_clock::now() >= timer.expiry()));
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(need_no_token_if_the_executor_brings_it, Timer, every_timer)
{
  using awaitable_timer = typename asio::use_awaitable_t<>::template as_default_on_t<Timer>;
  asio::io_context context;
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    awaitable_timer timer(context, 1ms);
    co_await timer.async_wait();
    BOOST_TEST((std::chrono::steady_clock::now() >= timer.expiry()));
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(can_have_a_tuple_by_default, Timer, every_timer)
{
  using token = asio::as_tuple_t<asio::use_awaitable_t<>>;
  asio::io_context context;
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    typename token::template as_default_on_t<Timer> timer(context, 1ms);
    const auto [ec] = co_await timer.async_wait();
    BOOST_TEST(!ec);
  });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(other_tokens)

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred_starts_nothing_until_it_is_launched, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  outcome wait;
  auto operation = timer.async_wait(asio::deferred);
  BOOST_TEST(timer.cancel() == 0U);
  std::move(operation)(wait.recorder());
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred_chains_another_wait, Timer, every_timer)
{
  asio::io_context context;
  Timer first(context, 1ms);
  Timer second(context, 2ms);
  outcome chain;
  first.async_wait(asio::deferred([&](error_code ec) {
    BOOST_TEST(!ec);
    return second.async_wait(asio::deferred);
  }))(chain.recorder());
  support::run_to_end(context);
  BOOST_TEST(chain.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(detached_still_counts_as_a_wait, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  timer.async_wait(asio::detached);
  context.poll();
  BOOST_TEST(!context.stopped());
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(append_adds_an_argument, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  int got = 0;
  timer.async_wait(asio::append([&](error_code, int n) { got = n; }, 42));
  support::run_to_end(context);
  BOOST_TEST(got == 42);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(as_tuple_reaches_a_callback, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  std::optional<error_code> got;
  timer.async_wait(asio::as_tuple([&](std::tuple<error_code> t) { got = std::get<0>(t); }));
  support::run_to_end(context);
  BOOST_REQUIRE(got.has_value());
  BOOST_TEST(!*got);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(redirect_error_reaches_a_future, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  error_code ec;
  std::future<void> done = timer.async_wait(asio::redirect_error(asio::use_future, ec));
  timer.cancel();
  support::run_to_end(context);
  BOOST_CHECK_NO_THROW(done.get());
  BOOST_TEST(ec == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_SUITE_END()
