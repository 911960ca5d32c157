// Boost.Beast's WebSocket on TLS on a tcp_stream.
#include <boost/beast/websocket/ssl.hpp>

#include <asio_wheel/beast.hpp>
#include <boost/test/unit_test.hpp>
#include <utility>

#include "support/websocket_story.hpp"
#include "tls/tls_ends.hpp"

namespace {

struct handshaken : support::tls_ends {
  handshaken() { shake_hands(); }
};

struct story : handshaken, support::websocket_story<support::tls_ends::stream> {
  story() : websocket_story(*this, std::move(client), std::move(server)) {}
};

}  // namespace

BOOST_AUTO_TEST_SUITE(websocket_on_tls)

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
