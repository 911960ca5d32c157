// heartbeat: pings of an idle connection, and the loss of a silent peer.
#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/due.hpp"
#include "support/earliest.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::wheel_in_virtual_time;

BOOST_TEST_DONT_PRINT_LOG_VALUE(asio_wheel::heartbeat_event)

namespace {

/// The result of one async_next.
struct beat : support::outcome {
  heartbeat_event event{};

  [[nodiscard]] bool is(heartbeat_event e) const { return succeeded() && event == e; }

  [[nodiscard]] auto recorder()
  {
    return [this](error_code ec, heartbeat_event e) {
      outcome::recorder()(ec);
      event = e;
    };
  }
};

/// Runs the context until the connection's next event, and returns that.
heartbeat_event next(context_with_wheel& c, heartbeat& h)
{
  beat b;
  h.async_next(b.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(b.calls == 1);
  BOOST_TEST(!b.error);
  return b.event;
}

/// Takes each event, and answers pings at once or not at all.
struct peer {
  heartbeat& h;
  bool answers = true;
  std::size_t pings = 0, losses = 0;

  void live()
  {
    h.async_next([this](error_code ec, heartbeat_event e) {
      if (ec) return;
      ++(e == heartbeat_event::send_ping ? pings : losses);
      h.sent();
      if (answers) h.received();
      live();
    });
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(heartbeat_setup)

BOOST_AUTO_TEST_CASE(tells_its_options)
{
  context_with_wheel c;
  const heartbeat h(c.wheel, {1h, 3});
  BOOST_TEST((h.options().interval == 1h));
  BOOST_TEST(h.options().max_missed == 3U);
}

BOOST_AUTO_TEST_CASE(refuses_bad_options_by_name)
{
  context_with_wheel c;
  const auto names = [](const char* words) {
    return [words](const std::invalid_argument& e) {
      return std::string(e.what()).find(words) != std::string::npos;
    };
  };
  BOOST_CHECK_EXCEPTION(heartbeat(c.wheel, {0ns, 3}), std::invalid_argument,
                        names("heartbeat_options::interval is 0ns; it must be more than 0ns"));
  BOOST_CHECK_EXCEPTION(heartbeat(c.wheel, {1s, 0}), std::invalid_argument,
                        names("heartbeat_options::max_missed is 0; it must be at least 1"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(heartbeat_rules)

BOOST_AUTO_TEST_CASE(a_ping_is_due_when_nothing_was_sent_or_received_for_an_interval)
{
  context_with_wheel c;
  const auto made = c.wheel.now();
  heartbeat h(c.wheel, {5ms, 1000});
  BOOST_TEST(next(c, h) == heartbeat_event::send_ping);
  BOOST_TEST((c.wheel.now() - made >= 5ms));
}

BOOST_AUTO_TEST_CASE(a_ping_is_due_when_only_one_direction_was_idle)
{
  using direction = void (heartbeat::*)() noexcept;
  for (const direction busy : {&heartbeat::sent, &heartbeat::received}) {
    context_with_wheel c;
    heartbeat h(c.wheel, {5ms, 1000});
    beat b;
    h.async_next(b.recorder());
    support::spin(c.wheel, 7ms, [&] { (h.*busy)(); });
    c.context.poll();
    support::run_to_end(c.context);
    BOOST_TEST(b.is(heartbeat_event::send_ping));
  }
}

BOOST_AUTO_TEST_CASE(no_ping_is_due_while_both_directions_are_busy)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {5ms, 1000});
  auto last = c.wheel.now();
  duration idle{};
  h.async_next([&](error_code, heartbeat_event) { idle = c.wheel.now() - last; });
  asio::post(c.context, [&] {
    support::spin(c.wheel, 20ms, [&] {
      last = c.wheel.now();
      h.sent();
      h.received();
    });
  });
  support::run_to_end(c.context);
  BOOST_TEST((idle >= 5ms));
  BOOST_TEST(c.wheel.stats().expired == 1U);
}

BOOST_AUTO_TEST_CASE(pings_keep_an_interval_apart_whatever_the_caller_does)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {3ms, 1000});
  auto asked = c.wheel.now();
  for (int i = 0; i < 5; ++i) {
    const auto asked_before = std::exchange(asked, c.wheel.now());
    BOOST_TEST(next(c, h) == heartbeat_event::send_ping);
    BOOST_TEST((c.wheel.now() - asked_before >= (i == 0 ? 0ms : 3ms)));
    if (i % 2 == 0) support::spin(c.wheel, 10ms);  // a caller that is late
  }
}

BOOST_AUTO_TEST_CASE(a_peer_is_lost_an_interval_after_the_last_ping_that_may_go_unanswered)
{
  for (const std::size_t max_missed : {1U, 2U, 3U, 7U}) {
    wheel_in_virtual_time c;
    heartbeat h(c.wheel, {10ms, max_missed});
    peer p{h};
    p.live();
    c.time.advance(20ms);
    p.answers = false;
    p.pings = 0;
    c.time.advance(10ms * max_missed + 9ms);
    BOOST_TEST(p.pings == max_missed);
    BOOST_TEST(p.losses == 0U);
    c.time.advance(1ms);
    BOOST_TEST(p.pings == max_missed);
    BOOST_TEST(p.losses == 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_that_took_a_while_does_not_change_how_many_pings_may_go_unanswered)
{
  wheel_in_virtual_time c;
  heartbeat h(c.wheel, {10ms, 3});
  peer p{h};
  p.live();
  p.answers = false;
  c.time.advance(14ms);
  h.received();  // the answer to the ping of 10 ms
  p.pings = 0;
  c.time.advance(35ms);  // pings at 20, 30 and 40 ms
  BOOST_TEST(p.pings == 3U);
  BOOST_TEST(p.losses == 0U);
  c.time.advance(1ms);
  BOOST_TEST(p.pings == 3U);
  BOOST_TEST(p.losses == 1U);
}

BOOST_AUTO_TEST_CASE(a_caller_that_is_late_still_gives_each_ping_its_interval)
{
  wheel_in_virtual_time c;
  heartbeat h(c.wheel, {10ms, 3});
  c.time.advance(35ms);
  peer p{h};
  p.answers = false;
  p.live();  // pings at 35, 45 and 55 ms
  c.time.advance(29ms);
  BOOST_TEST(p.pings == 3U);
  BOOST_TEST(p.losses == 0U);
  c.time.advance(1ms);
  BOOST_TEST(p.losses == 1U);
}

BOOST_AUTO_TEST_CASE(a_peer_that_answers_is_never_lost)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {2ms, 3});
  auto last = c.wheel.now();
  for (int i = 0; i < 8; ++i) {
    const auto event = next(c, h);
    // On a machine that stalls a loss may be due, but only if nothing was received for long enough.
    if (event == heartbeat_event::peer_lost) BOOST_TEST((c.wheel.now() - last >= 8ms));
    last = c.wheel.now();
    h.sent();
    h.received();
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_stays_lost_is_so_once_in_an_interval)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {3ms, 1});
  support::spin(c.wheel, 7ms);
  auto asked = c.wheel.now();
  BOOST_TEST(next(c, h) == heartbeat_event::peer_lost);
  for (int i = 0; i < 3; ++i) {
    const auto asked_before = std::exchange(asked, c.wheel.now());
    h.sent();
    BOOST_TEST(next(c, h) == heartbeat_event::peer_lost);
    BOOST_TEST((c.wheel.now() - asked_before >= 3ms));
  }
}

BOOST_AUTO_TEST_CASE(a_lost_peer_comes_back_when_something_is_received)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {5ms, 4});
  support::spin(c.wheel, 25ms);
  BOOST_TEST(next(c, h) == heartbeat_event::peer_lost);
  const auto received = c.wheel.now();
  h.received();
  h.sent();
  const auto event = next(c, h);
  const auto silent = c.wheel.now() - received;
  BOOST_TEST((silent >= 5ms));
  BOOST_TEST((event == heartbeat_event::send_ping || silent >= 25ms));
}

BOOST_AUTO_TEST_CASE(the_rules_hold_with_the_coarse_clock)
{
  wheel_options options;
  options.clock = clock_source::coarse;
  context_with_wheel c(options);
  heartbeat h(c.wheel, {4ms, 2});
  auto received = support::earliest(c.wheel, 0ms);
  h.received();
  h.sent();
  for (int i = 0; i < 6; ++i) {
    if (next(c, h) == heartbeat_event::peer_lost) {
      BOOST_TEST((c.wheel.now() - received >= 12ms));
      received = support::earliest(c.wheel, 0ms);
      h.received();
      h.sent();
    } else {
      BOOST_TEST((c.wheel.now() - received >= 4ms));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_interval_without_end_loses_nobody)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {duration::max(), 3});
  beat b;
  h.async_next(b.recorder());
  heartbeat slow(c.wheel, {1ms, static_cast<std::size_t>(-1)});
  BOOST_TEST(c.context.poll() <= 2U);
  BOOST_TEST(b.pending());
  BOOST_TEST(h.cancel() == 1U);
  BOOST_TEST(next(c, slow) == heartbeat_event::send_ping);
  BOOST_TEST(b.aborted());
}

BOOST_AUTO_TEST_CASE(the_rules_hold_for_thousands_of_connections)
{
  context_with_wheel c;
  std::deque<heartbeat> connections;
  std::vector<int> pings(3000);
  std::function<void(std::size_t)> serve = [&](std::size_t i) {
    connections[i].async_next([&, i](error_code ec, heartbeat_event) {
      if (ec) return;
      connections[i].sent();
      connections[i].received();
      if (++pings[i] < 3) serve(i);
    });
  };
  for (std::size_t i = 0; i < pings.size(); ++i) {
    connections.emplace_back(c.wheel, heartbeat_options{5ms, 3});
    serve(i);
  }
  support::run_to_end(c.context);
  BOOST_TEST(std::count(pings.begin(), pings.end(), 3) == 3000);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(heartbeat_wait)

BOOST_AUTO_TEST_CASE(is_awaited_without_a_token)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    heartbeat h(c.wheel, {2ms, 1000});
    const heartbeat_event event = co_await h.async_next();
    BOOST_TEST(event == heartbeat_event::send_ping);
  });
}

BOOST_AUTO_TEST_CASE(gives_each_of_several_an_event_of_its_own)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {2ms, 1000});
  std::array<beat, 3> beats;
  std::vector<time_point> times;
  for (auto& b : beats) {
    h.async_next([&, record = b.recorder()](error_code ec, heartbeat_event e) mutable {
      record(ec, e);
      times.push_back(c.wheel.now());
    });
  }
  support::run_to_end(c.context);
  for (const auto& b : beats) BOOST_TEST(b.is(heartbeat_event::send_ping));
  BOOST_TEST((times.back() - times.front() >= 2ms));
}

BOOST_AUTO_TEST_SUITE_END()
