// Boost.Redis with deadlines on the wheel, and a real server: test/libraries/check.sh starts it.
#include <asio_wheel.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>
#include <boost/redis/src.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <tuple>

#include "libraries/server_port.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
namespace redis = boost::redis;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

/// Newer ones take their logger in the constructor.
template <class Connection>
void run(Connection& connection, const redis::config& config)
{
  if constexpr (requires { connection.async_run(config, asio::detached); })
    connection.async_run(config, asio::detached);
  else
    connection.async_run(config, {}, asio::detached);
}

/// A connection, and what it takes to ask the server and to wait for what never comes.
struct client : support::context_with_wheel {
  client()
  {
    redis::config config;
    config.addr = {"127.0.0.1", support::server_port()};
    config.health_check_interval = 0s;
    run(connection, config);
    unanswered.push("BLPOP", "nobody_pushes_here", 0);
    ping.push("PING");
  }

  redis::connection connection{context};
  redis::request unanswered, ping;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redis_requests)

BOOST_AUTO_TEST_CASE(an_answer_in_time_is_passed_on)
{
  client c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    redis::response<std::string> answer;
    const auto [ec, bytes] = co_await c.connection.async_exec(
      c.ping, answer, timeout_after(20s, asio::as_tuple(asio::use_awaitable)));
    BOOST_TEST(!ec, ec.message());
    BOOST_TEST(bytes > 0U);
    BOOST_TEST(std::get<0>(answer).value() == "PONG");
    c.connection.cancel();
  });
  BOOST_TEST(c.wheel.stats().pending == 0U);
}

BOOST_AUTO_TEST_CASE(timeout_after_ends_a_request_that_nobody_answers)
{
  client c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto [ec, bytes] = co_await c.connection.async_exec(
      c.unanswered, redis::ignore, timeout_after(100ms, asio::as_tuple(asio::use_awaitable)));
    BOOST_TEST(ec == asio::error::timed_out, ec.message());
    BOOST_TEST(bytes == 0U);
    c.connection.cancel();
  });
}

BOOST_AUTO_TEST_CASE(cancel_after_ends_a_request_that_nobody_answers)
{
  client c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto [ec, bytes] = co_await c.connection.async_exec(
      c.unanswered, redis::ignore, cancel_after(100ms, asio::as_tuple(asio::use_awaitable)));
    BOOST_TEST(ec == asio::error::operation_aborted, ec.message());
    BOOST_TEST(bytes == 0U);
    c.connection.cancel();
  });
}

BOOST_AUTO_TEST_SUITE_END()
