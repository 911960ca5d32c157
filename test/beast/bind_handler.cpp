// Handlers made by Boost.Beast's bind_front_handler, with which all of its own examples are
// written.
#include <array>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>

#include "support/tcp_ends.hpp"

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

struct session : support::tcp_ends {
  void on_wait(error_code ec)
  {
    ++calls;
    error = ec;
  }
  void on_read(error_code ec, std::size_t) { on_wait(ec); }

  std::array<char, 8> room{};
  int calls = 0;
  error_code error;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(handlers_bound_by_beast)

BOOST_AUTO_TEST_CASE(are_called_by_timers)
{
  session s;
  asio_wheel::wheel_timer timer(s.wheel, 1s);
  timer.async_wait(beast::bind_front_handler(&session::on_wait, &s));
  s.time.advance(1s);
  BOOST_TEST(s.calls == 1);
  BOOST_TEST(!s.error);
}

BOOST_AUTO_TEST_CASE(are_called_by_streams)
{
  session s;
  s.local.expires_after(1s);
  s.local.async_read_some(asio::buffer(s.room), beast::bind_front_handler(&session::on_read, &s));
  s.time.advance(1s);
  BOOST_TEST(s.calls == 1);
  BOOST_TEST(s.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(keep_their_cancellation_slot)
{
  session s;
  asio::cancellation_signal signal;
  s.wheel.async_wait(1h, beast::bind_front_handler(asio::bind_cancellation_slot(
                           signal.slot(), [&s](error_code ec) { s.on_wait(ec); })));
  signal.emit(asio::cancellation_type::terminal);
  s.context.restart();
  s.context.poll();
  BOOST_TEST(s.calls == 1);
  BOOST_TEST(s.error == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_SUITE_END()
