// heartbeat: pings of an idle connection, and the loss of a silent peer.
#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/due.hpp"
#include "support/earliest.hpp"
#include "support/ledger.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;

BOOST_TEST_DONT_PRINT_LOG_VALUE(asio_wheel::heartbeat_event)

namespace {

/// The result of one async_next.
struct beat {
  int calls = 0;
  error_code error;
  heartbeat_event event{};

  [[nodiscard]] bool pending() const { return calls == 0; }
  [[nodiscard]] bool aborted() const
  {
    return calls == 1 && error == asio::error::operation_aborted;
  }
  [[nodiscard]] bool is(heartbeat_event e) const { return calls == 1 && !error && event == e; }

  [[nodiscard]] auto recorder()
  {
    return [this](error_code ec, heartbeat_event e) {
      ++calls;
      error = ec;
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

constexpr heartbeat_options hourly{1h, 3};

}  // namespace

BOOST_AUTO_TEST_SUITE(heartbeat_setup)

BOOST_AUTO_TEST_CASE(sits_where_it_is_put)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  heartbeat on_context(c.context, hourly);
  heartbeat on_executor(c.context.get_executor(), hourly);
  heartbeat on_strand(strand, hourly);
  heartbeat on_wheel(c.wheel, hourly);
  heartbeat on_both({c.wheel, strand}, hourly);
  BOOST_TEST((on_wheel.get_executor() == c.wheel.get_executor()));
  BOOST_TEST((on_strand.get_executor() == strand));
  BOOST_TEST((on_both.get_executor() == strand));
  BOOST_TEST((on_both.options().interval == 1h));
  BOOST_TEST(on_both.options().max_missed == 3U);
  for (auto* h : {&on_context, &on_executor, &on_strand, &on_wheel, &on_both}) {
    h->async_next([](error_code, heartbeat_event) {});
  }
  BOOST_TEST(c.wheel.pending() == 5U);
  BOOST_TEST(c.wheel.cancel_all() == 5U);
  support::run_to_end(c.context);
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

BOOST_AUTO_TEST_CASE(may_outlive_its_context)
{
  const auto alive = std::make_shared<int>(0);
  std::optional<heartbeat> h;
  {
    context_with_wheel c;
    h.emplace(c.wheel, hourly);
    h->async_next([alive](error_code, heartbeat_event) { ++*alive; });
  }
  h->sent();
  h->received();
  BOOST_TEST(h->cancel() == 0U);
  BOOST_TEST(alive.use_count() == 1);
  BOOST_TEST(*alive == 0);
}

BOOST_AUTO_TEST_CASE(takes_its_wait_along_when_it_moves)
{
  context_with_wheel c;
  beat moved;
  beat replaced;
  heartbeat first(c.wheel, {4ms, 3});
  first.async_next(moved.recorder());
  heartbeat second(std::move(first));
  heartbeat third(c.wheel, hourly);
  third.async_next(replaced.recorder());
  third = std::move(second);
  BOOST_TEST((third.options().interval == 4ms));
  BOOST_TEST(first.cancel() + second.cancel() == 0U);
  support::run_to_end(c.context);
  BOOST_TEST((moved.is(heartbeat_event::send_ping) || moved.is(heartbeat_event::peer_lost)));
  BOOST_TEST(replaced.aborted());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(heartbeat_rules)

BOOST_AUTO_TEST_CASE(ping_when_nothing_was_sent_or_received_for_an_interval)
{
  context_with_wheel c;
  const auto made = c.wheel.now();
  heartbeat h(c.wheel, {5ms, 1000});
  BOOST_TEST(next(c, h) == heartbeat_event::send_ping);
  BOOST_TEST((c.wheel.now() - made >= 5ms));
}

BOOST_AUTO_TEST_CASE(ping_when_only_one_direction_was_idle)
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

BOOST_AUTO_TEST_CASE(no_ping_while_both_directions_are_busy)
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

BOOST_AUTO_TEST_CASE(a_peer_is_lost_after_the_intervals_it_missed)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {5ms, 3});
  const auto received = c.wheel.now();
  h.received();
  int pings = 0;
  while (next(c, h) == heartbeat_event::send_ping) {
    h.sent();
    ++pings;
  }
  BOOST_TEST((c.wheel.now() - received >= 15ms));
  BOOST_TEST(pings <= 2);
}

BOOST_AUTO_TEST_CASE(a_peer_that_answers_is_never_lost)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {2ms, 3});
  auto last = c.wheel.now();
  for (int i = 0; i < 8; ++i) {
    const auto event = next(c, h);
    // On a machine that stalls a loss may be due, but only if nothing was received for long enough.
    if (event == heartbeat_event::peer_lost) BOOST_TEST((c.wheel.now() - last >= 6ms));
    last = c.wheel.now();
    h.sent();
    h.received();
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_stays_lost_is_so_once_in_an_interval)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {3ms, 1});
  support::spin(c.wheel, 5ms);
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
  BOOST_TEST((event == heartbeat_event::send_ping || silent >= 20ms));
}

BOOST_AUTO_TEST_CASE(hold_with_the_coarse_clock)
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
      BOOST_TEST((c.wheel.now() - received >= 8ms));
      received = support::earliest(c.wheel, 0ms);
      h.received();
      h.sent();
    } else {
      BOOST_TEST((c.wheel.now() - received >= 4ms));
    }
  }
}

BOOST_AUTO_TEST_CASE(of_intervals_without_end_never_lose_anybody)
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

BOOST_AUTO_TEST_CASE(hold_for_thousands_of_connections)
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

BOOST_AUTO_TEST_CASE(fulfils_a_future)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {2ms, 1000});
  auto future = h.async_next(asio::use_future);
  support::run_to_end(c.context);
  BOOST_TEST(future.get() == heartbeat_event::send_ping);
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

BOOST_AUTO_TEST_CASE(runs_its_handler_on_the_heartbeats_strand_however_it_ends)
{
  context_with_wheel c;
  using strand_type = asio::strand<asio::io_context::executor_type>;
  const strand_type strand(c.context.get_executor());
  heartbeat pings(strand, {1ms, 1000});
  basic_heartbeat<strand_type> loses(strand, {1ms, 1});
  heartbeat aborts(strand, hourly);
  int on_strand = 0;
  const auto handler = [&](error_code, heartbeat_event) {
    on_strand += strand.running_in_this_thread() ? 1 : 0;
  };
  pings.async_next(handler);
  loses.async_next(handler);
  aborts.async_next(handler);
  aborts.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(on_strand == 3);
}

BOOST_AUTO_TEST_CASE(prefers_the_handlers_own_executor)
{
  context_with_wheel c;
  const auto of_handler = asio::make_strand(c.context);
  heartbeat h(asio::make_strand(c.context), {1ms, 3});
  bool there = false;
  h.async_next(asio::bind_executor(
    of_handler, [&](error_code, heartbeat_event) { there = of_handler.running_in_this_thread(); }));
  support::run_to_end(c.context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_CASE(is_never_completed_inline)
{
  context_with_wheel c;
  heartbeat h(c.wheel, {1ms, 3});
  support::spin(c.wheel, 2ms);
  beat b;
  asio::post(c.context, [&] {
    h.async_next(asio::bind_executor(asio::system_executor(), b.recorder()));
    h.cancel();
    BOOST_TEST(b.pending());
  });
  support::run_to_end(c.context);
  BOOST_TEST(b.calls == 1);
}

BOOST_AUTO_TEST_CASE(is_one_allocation_which_is_free_before_the_handler)
{
  for (const bool cancelled : {false, true}) {
    context_with_wheel c;
    support::ledger books;
    std::optional<std::size_t> held;
    heartbeat h(c.wheel, {2ms, 1000});
    h.async_next(
      asio::bind_allocator(support::booking_allocator<void>(books),
                           [&](error_code, heartbeat_event) { held = books.outstanding; }));
    for (int i = 0; i < 3; ++i) {
      support::spin(c.wheel, 3ms, [&] {
        h.sent();
        h.received();
      });
      c.context.poll();
    }
    if (cancelled) h.cancel();
    support::run_to_end(c.context);
    BOOST_TEST(held.value() == 0U);
    BOOST_TEST(books.taken == 1U);
  }
}

BOOST_AUTO_TEST_CASE(ends_by_each_type_of_cancellation)
{
  for (const auto type : {cancellation_type::terminal, cancellation_type::partial,
                          cancellation_type::total, cancellation_type::all}) {
    context_with_wheel c;
    heartbeat h(c.wheel, hourly);
    asio::cancellation_signal signal;
    beat b;
    h.async_next(asio::bind_cancellation_slot(signal.slot(), b.recorder()));
    signal.emit(cancellation_type::none);
    BOOST_TEST(c.wheel.pending() == 1U);
    signal.emit(type);
    BOOST_TEST(c.wheel.pending() == 0U);
    BOOST_TEST(b.pending());
    support::run_to_end(c.context);
    BOOST_TEST(b.aborted());
  }
}

BOOST_AUTO_TEST_CASE(aborts_when_its_heartbeat_is_destroyed)
{
  context_with_wheel c;
  std::array<beat, 3> beats;
  {
    heartbeat h(c.wheel, hourly);
    for (auto& b : beats) h.async_next(b.recorder());
  }
  BOOST_TEST(c.wheel.pending() == 0U);
  for (const auto& b : beats) BOOST_TEST(b.pending());
  support::run_to_end(c.context);
  for (const auto& b : beats) BOOST_TEST(b.aborted());
}

BOOST_AUTO_TEST_CASE(can_be_ended_when_it_is_due)
{
  for (const bool by_signal : {false, true}) {
    context_with_wheel c;
    asio::cancellation_signal signal;
    beat b;
    std::optional<heartbeat> h;
    support::act_while_due(
      c,
      [&] {
        h.emplace(c.wheel, heartbeat_options{1ms, 3});
        h->async_next(asio::bind_cancellation_slot(signal.slot(), b.recorder()));
      },
      [&] {
        if (by_signal)
          signal.emit(cancellation_type::partial);
        else
          h.reset();
        BOOST_TEST(b.pending());
      });
    BOOST_TEST(b.aborted());
  }
}

BOOST_AUTO_TEST_CASE(ends_when_another_thread_cancels)
{
  for (const bool by_signal : {false, true}) {
    context_with_wheel c;
    heartbeat h(c.wheel, hourly);
    asio::cancellation_signal signal;
    beat b;
    h.async_next(asio::bind_cancellation_slot(signal.slot(), b.recorder()));
    std::thread other([&] {
      if (by_signal)
        signal.emit(cancellation_type::total);
      else
        h.cancel();
    });
    support::run_to_end(c.context);
    other.join();
    BOOST_TEST(b.aborted());
  }
}

BOOST_AUTO_TEST_CASE(is_refused_beyond_the_limit)
{
  context_with_wheel c(support::with_limit(1));
  heartbeat h(c.wheel, hourly);
  std::array<beat, 2> beats;
  for (auto& b : beats) h.async_next(b.recorder());
  c.context.poll();
  BOOST_TEST((beats[1].error == wheel_errc::too_many_pending));
  h.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(beats[0].aborted());
}

BOOST_AUTO_TEST_SUITE_END()
