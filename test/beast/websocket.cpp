// Boost.Beast's WebSocket on a tcp_stream.
#include <asio_wheel/beast.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "support/tcp_ends.hpp"
#include "support/websocket_story.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

struct story : support::tcp_ends, support::websocket_story<asio_wheel::tcp_stream> {
  story() : websocket_story(*this, std::move(local), std::move(remote)) {}
};

}  // namespace

BOOST_AUTO_TEST_SUITE(websocket_on_a_tcp_stream)

BOOST_FIXTURE_TEST_CASE(opens_echoes_and_closes, story)
{
  websocket_story::opens_echoes_and_closes();
}

BOOST_FIXTURE_TEST_CASE(ends_a_read_that_is_idle, story)
{
  websocket_story::ends_a_read_that_is_idle();
}

BOOST_FIXTURE_TEST_CASE(has_timeouts_of_its_own, story)
{
  websocket_story::has_timeouts_of_its_own();
}

BOOST_FIXTURE_TEST_CASE(ends_a_read_by_timeout_after, story)
{
  ends_by([](auto handler) { return timeout_after(1s, handler); }, asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(ends_a_read_by_cancel_after, story)
{
  ends_by([](auto handler) { return cancel_after(1s, handler); }, asio::error::operation_aborted);
}

BOOST_FIXTURE_TEST_CASE(ends_a_read_by_a_guard, story)
{
  std::optional<wheel_watchdog> dog;
  ends_by(
    [&](auto handler) {
      dog.emplace(context, 1s);
      return dog->guard(handler);
    },
    asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(ends_a_read_whose_handler_has_an_executor, story)
{
  ends_by(
    [&](auto handler) {
      return timeout_after(1s, asio::bind_executor(context.get_executor(), handler));
    },
    asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(ends_a_write, story)
{
  websocket_story::ends_a_write();
}

BOOST_FIXTURE_TEST_CASE(ends_a_close, story)
{
  websocket_story::ends_a_close();
}

BOOST_FIXTURE_TEST_CASE(ends_a_handshake, story)
{
  websocket_story::ends_a_handshake();
}

BOOST_FIXTURE_TEST_CASE(reads_in_time_under_a_deadline, story)
{
  websocket_story::reads_in_time_under_a_deadline();
}

BOOST_AUTO_TEST_SUITE_END()
