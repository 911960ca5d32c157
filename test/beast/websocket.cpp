// Boost.Beast's WebSocket on a tcp_stream.
#include <asio_wheel/beast.hpp>
#include <boost/test/unit_test.hpp>
#include <utility>

#include "support/tcp_ends.hpp"
#include "support/websocket_story.hpp"

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

BOOST_AUTO_TEST_SUITE_END()
