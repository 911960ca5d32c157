// Completion tokens and coroutines that users bring: each takes the library's operations, and takes
// a deadline. What the Boost or Asio at hand does not have is left out.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/co_composed.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <tuple>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

#if defined(ASIO_WHEEL_TEST_SPAWN)
#include <boost/asio/spawn.hpp>
#endif
#if __has_include(<boost/asio/redirect_disposition.hpp>)
#include <boost/asio/redirect_disposition.hpp>
#endif

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;

// GCC 12 takes the two halves of co_composed's promise for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace {

// Waits on the wheel and then on Asio's timer, as one operation written with co_composed.
template <class Token>
auto async_wait_twice(wheel_timer_service& wheel, asio::steady_timer& timer, Token&& token)
{
  return asio::async_initiate<Token, void(error_code)>(
    asio::experimental::co_composed<void(error_code)>(
      []([[maybe_unused]] auto state, wheel_timer_service& w, asio::steady_timer& t) -> void {
        auto [ec] = co_await w.async_wait(1ms, asio::as_tuple(asio::deferred));
        if (ec) co_return std::tuple<error_code>(ec);
        t.expires_after(1h);
        auto [cut_short] =
          co_await t.async_wait(timeout_after(1ms, asio::as_tuple(asio::deferred)));
        co_return std::tuple<error_code>(cut_short);
      },
      timer),
    token, std::ref(wheel), std::ref(timer));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE(co_composed_awaits_waits_and_deadlines)
{
  context_with_wheel c;
  asio::steady_timer timer(c.context);
  support::outcome result;
  async_wait_twice(c.wheel, timer, result.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(result.calls == 1);
  BOOST_TEST(result.error == asio::error::timed_out);
}

#if defined(ASIO_WHEEL_TEST_SPAWN)
BOOST_AUTO_TEST_CASE(yield_context_waits_and_is_cut_short)
{
  context_with_wheel c;
  std::optional<error_code> ends[2];
  asio::spawn(
    c.context,
    [&](asio::yield_context yield) {
      error_code ec;
      c.wheel.async_wait(1ms, yield[ec]);
      ends[0] = ec;
      asio::steady_timer timer(c.context, 1h);
      timer.async_wait(timeout_after(1ms, yield[ec]));
      ends[1] = ec;
    },
    [](std::exception_ptr e) {
      if (e) std::rethrow_exception(e);
    });
  support::run_to_end(c.context);
  BOOST_TEST((ends[0] == error_code()));
  BOOST_TEST((ends[1] == asio::error::timed_out));
}
#endif

#if __has_include(<boost/asio/redirect_disposition.hpp>)
BOOST_AUTO_TEST_CASE(redirect_disposition_takes_the_error)
{
  context_with_wheel c;
  std::exception_ptr first, second;
  bool called = false;
  c.wheel.async_wait(1ms, asio::redirect_disposition([&] { called = true; }, first));
  asio::steady_timer timer(c.context, 1h);
  timer.async_wait(timeout_after(1ms, asio::redirect_disposition([] {}, second)));
  support::run_to_end(c.context);
  BOOST_TEST(called);
  BOOST_TEST(!first);
  BOOST_CHECK_THROW(std::rethrow_exception(second), asio_wheel::system_error);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
