// Boost.MySQL with deadlines on the wheel, and a real server: test/libraries/check.sh starts it.
#include <asio_wheel.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/mysql/any_connection.hpp>
#include <boost/mysql/connect_params.hpp>
#include <boost/mysql/results.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>

#include "libraries/server_port.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
namespace mysql = boost::mysql;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

struct client : support::context_with_wheel {
  /// Runs the query with `token`, on a new connection.
  template <class Token>
  error_code ask(const char* query, Token token)
  {
    error_code end;
    support::run_coroutine(context, [&]() -> asio::awaitable<void> {
      mysql::connect_params where;
      where.server_address.emplace_host_and_port(
        "127.0.0.1", static_cast<std::uint16_t>(std::stoi(support::server_port())));
      where.username = "root";
      where.ssl = mysql::ssl_mode::disable;
      co_await connection.async_connect(where, timeout_after(20s, asio::use_awaitable));
      std::tie(end) = co_await connection.async_execute(query, results, token);
    });
    BOOST_TEST(wheel.stats().pending == 0U);
    return end;
  }

  mysql::any_connection connection{context};
  mysql::results results;
};

constexpr auto result_of = asio::as_tuple(asio::use_awaitable);

}  // namespace

BOOST_AUTO_TEST_SUITE(mysql_queries)

BOOST_AUTO_TEST_CASE(an_answer_in_time_is_passed_on)
{
  client c;
  const error_code ec = c.ask("SELECT 6 * 7", timeout_after(20s, result_of));
  BOOST_TEST(!ec, ec.message());
  BOOST_TEST(c.results.rows().at(0).at(0).as_int64() == 42);
}

BOOST_AUTO_TEST_CASE(timeout_after_ends_a_query_that_takes_too_long)
{
  client c;
  const error_code ec = c.ask("SELECT SLEEP(60)", timeout_after(100ms, result_of));
  BOOST_TEST(ec == asio::error::timed_out, ec.message());
}

BOOST_AUTO_TEST_CASE(cancel_after_ends_a_query_that_takes_too_long)
{
  client c;
  const error_code ec = c.ask("SELECT SLEEP(60)", cancel_after(100ms, result_of));
  BOOST_TEST(ec == asio::error::operation_aborted, ec.message());
}

BOOST_AUTO_TEST_SUITE_END()
