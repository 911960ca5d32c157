// wheel_watchdog on the frame of a coroutine: its handler uses the frame, and the session ends in
// the pass in which the watchdog expires.
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

/// What is left of a session.
struct trace {
  bool frame_lives = false;
  int calls = 0;
  int expired = 0;
  int aborted = 0;
  int called_with_success_on_a_dead_frame = 0;
};

class frame_of {
public:
  explicit frame_of(trace& t) : trace_(t) { trace_.frame_lives = true; }
  frame_of(const frame_of&) = delete;
  frame_of& operator=(const frame_of&) = delete;
  ~frame_of() { trace_.frame_lives = false; }

private:
  trace& trace_;
};

/// Is idle for `first` and shows that it is alive, and then idle for 50 ms: as long as the watchdog
/// allows.
asio::awaitable<void> session(wheel_timer_service& wheel, std::chrono::milliseconds first, trace& t)
{
  const frame_of frame(t);
  const auto ex = co_await asio::this_coro::executor;
  tcp::socket socket(ex, tcp::v4());
  wheel_watchdog idle(ex, 50ms);
  idle.async_expired([&t, &socket](error_code ec) {
    ++t.calls;
    if (ec == asio::error::operation_aborted) ++t.aborted;
    if (ec) return;
    if (!t.frame_lives) {
      ++t.called_with_success_on_a_dead_frame;
      return;
    }
    ++t.expired;
    socket.close();
  });
  if (first > 0ms) {
    co_await wheel.async_wait(first, asio::use_awaitable);
    idle.touch();
  }
  co_await wheel.async_wait(50ms, asio::use_awaitable);
}

/// A watchdog that has been touched is filed again, behind the wait that ends the session: that is
/// first, and aborts it. One that has not is first itself.
void check(const trace& t, bool touched)
{
  BOOST_TEST(!t.frame_lives);
  BOOST_TEST(t.calls == 1);
  BOOST_TEST(t.called_with_success_on_a_dead_frame == 0);
  BOOST_TEST(t.aborted == (touched ? 1 : 0));
  BOOST_TEST(t.expired == (touched ? 0 : 1));
}

/// With the context's own executor, and in a strand.
template <class Function>
void with_both_executors(asio::io_context& context, Function f)
{
  f(asio::any_io_executor(context.get_executor()));
  f(asio::any_io_executor(asio::make_strand(context)));
}

constexpr int many = 100;

}  // namespace

BOOST_AUTO_TEST_SUITE(watchdog_of_a_session)

BOOST_AUTO_TEST_CASE(that_another_wait_ends_in_the_same_pass_is_aborted)
{
  support::wheel_in_virtual_time c;
  with_both_executors(c.context, [&](const asio::any_io_executor& ex) {
    for (int i = 0; i < many; ++i) {
      trace t;
      asio::co_spawn(ex, session(c.wheel, 10ms, t), asio::detached);
      c.time.advance(60ms);
      check(t, true);
    }
  });
}

BOOST_AUTO_TEST_CASE(that_is_not_over_yet_is_told_of_the_expiry)
{
  support::wheel_in_virtual_time c;
  with_both_executors(c.context, [&](const asio::any_io_executor& ex) {
    for (int i = 0; i < many; ++i) {
      trace t;
      asio::co_spawn(ex, session(c.wheel, 0ms, t), asio::detached);
      c.time.advance(50ms);
      check(t, false);
    }
  });
}

BOOST_AUTO_TEST_CASE(among_many_that_end_in_the_same_pass_is_aborted)
{
  support::wheel_in_virtual_time c;
  with_both_executors(c.context, [&](const asio::any_io_executor& ex) {
    std::vector<trace> traces(many);
    for (auto& t : traces) asio::co_spawn(ex, session(c.wheel, 10ms, t), asio::detached);
    c.time.advance(60ms);
    for (const auto& t : traces) check(t, true);
  });
}

BOOST_AUTO_TEST_CASE(that_a_handler_of_the_same_tick_destroys_is_aborted)
{
  support::wheel_in_virtual_time c;
  with_both_executors(c.context, [&](const asio::any_io_executor& ex) {
    for (int i = 0; i < many; ++i) {
      trace t;
      // A session as an object: what its handler uses goes with it.
      struct object {
        object(const asio::any_io_executor& ex, trace& t) : frame(t), idle(ex, 50ms) {}
        frame_of frame;
        wheel_watchdog idle;
      };
      auto o = std::make_unique<object>(ex, t);
      c.wheel.async_wait(50ms, [&](error_code) { o.reset(); });
      o->idle.async_expired([&](error_code ec) {
        ++t.calls;
        if (ec == asio::error::operation_aborted) ++t.aborted;
        if (!ec && !t.frame_lives) ++t.called_with_success_on_a_dead_frame;
      });
      c.time.advance(50ms);
      check(t, true);
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
