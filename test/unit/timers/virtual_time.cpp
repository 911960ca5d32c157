// Time that is moved by hand: what advances with it, and what does not.
#include <algorithm>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/socket_pair.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

namespace {

struct context_in_virtual_time : context_with_wheel {
  explicit context_in_virtual_time(wheel_options options = {}) : context_with_wheel(options) {}

  virtual_time time{wheel};
};

/// Starts a wait of `period` again and again, and counts how often it expired.
struct ticking {
  wheel_timer_service& wheel;
  duration period;
  std::uint64_t& count;

  void operator()(error_code ec) const
  {
    if (ec) return;
    ++count;
    wheel.async_wait(period, *this);
  }
};

static_assert(!std::is_copy_constructible_v<virtual_time>);
static_assert(!std::is_move_constructible_v<virtual_time>);

}  // namespace

BOOST_AUTO_TEST_SUITE(stopping_the_clock)

BOOST_AUTO_TEST_CASE(makes_now_stand_still_until_it_is_advanced)
{
  context_in_virtual_time c;
  const auto start = c.wheel.now();
  const auto later = std::chrono::steady_clock::now() + 2ms;
  BOOST_TEST(support::eventually([&] { return std::chrono::steady_clock::now() > later; }));
  BOOST_TEST((c.wheel.now() == start));
  c.time.advance(90min);
  BOOST_TEST((c.wheel.now() == start + 90min));
  BOOST_TEST((c.time.now() == c.wheel.now()));
}

BOOST_AUTO_TEST_CASE(twice_is_refused_and_changes_nothing)
{
  context_in_virtual_time c;
  const auto start = c.time.now();
  BOOST_CHECK_THROW(virtual_time{c.wheel}, std::logic_error);
  BOOST_TEST((c.wheel.now() == start));
  c.time.advance(1s);
  BOOST_TEST((c.wheel.now() == start + 1s));
}

BOOST_AUTO_TEST_CASE(again_after_it_ran_works)
{
  context_with_wheel c;
  for (int i = 0; i < 3; ++i) {
    virtual_time time(c.wheel);
    outcome wait;
    c.wheel.async_wait(1h, wait.recorder());
    time.advance(1h + 1ms);
    BOOST_TEST(wait.succeeded());
  }
}

BOOST_AUTO_TEST_CASE(of_one_wheel_leaves_the_others_alone)
{
  context_in_virtual_time c;
  context_with_wheel other;
  virtual_time others(other.wheel);
  const auto start = other.wheel.now();
  c.time.advance(1h);
  BOOST_TEST((other.wheel.now() == start));
}

BOOST_AUTO_TEST_CASE(of_another_context_needs_a_function)
{
  asio::thread_pool pool(1);
  auto& wheel = make_wheel(pool);
  BOOST_CHECK_THROW(virtual_time{wheel}, std::invalid_argument);
  // It was not stopped.
  BOOST_CHECK_NO_THROW(virtual_time(wheel, [] {}));
}

BOOST_AUTO_TEST_CASE(keeps_waits_from_completing_by_themselves)
{
  context_in_virtual_time c;
  outcome wait;
  c.wheel.async_wait(1ms, wait.recorder());
  c.context.run_for(20ms);
  BOOST_TEST(wait.pending());
  BOOST_TEST(c.wheel.stats().wakeups == 0U);
}

BOOST_AUTO_TEST_CASE(stops_the_timer_that_is_set_for_an_earlier_wait)
{
  support::with_time_enough(5ms, [](std::chrono::milliseconds ahead) {
    context_with_wheel c;
    outcome wait;
    const auto deadline = c.wheel.now() + ahead;
    c.wheel.async_wait(deadline, wait.recorder());
    c.context.poll();
    virtual_time time(c.wheel);
    if (c.wheel.now() >= deadline) return false;
    c.context.run_for(ahead + 25ms);
    BOOST_TEST(wait.pending());
    time.advance(ahead + 1ms);
    BOOST_TEST(wait.succeeded());
    return true;
  });
}

BOOST_AUTO_TEST_CASE(does_not_keep_a_context_running_that_has_no_waits)
{
  context_in_virtual_time c;
  support::run_to_end(c.context);
  outcome wait;
  c.wheel.async_wait(1s, wait.recorder());
  c.time.advance(2s);
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(lets_waits_complete_at_once_that_are_past)
{
  context_in_virtual_time c;
  c.time.advance(1h);
  outcome past;
  c.wheel.async_wait(c.wheel.now() - 1min, past.recorder());
  BOOST_TEST(past.pending());
  support::run_to_end(c.context);
  BOOST_TEST(past.succeeded());
}

BOOST_AUTO_TEST_CASE(lets_the_coarse_clock_add_nothing)
{
  wheel_options options;
  options.clock = clock_source::coarse;
  context_in_virtual_time c(options);
  outcome wait;
  c.wheel.async_wait(10ms, wait.recorder());
  c.time.advance(10ms + options.tick);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(lets_a_thread_block_until_another_has_advanced_it)
{
  context_in_virtual_time c;
  wheel_timer timer(c.wheel, 1h);
  std::atomic<bool> returned = false;
  std::thread blocked([&] {
    timer.wait();
    returned = true;
  });
  c.time.advance(59min);
  BOOST_TEST(!returned);
  c.time.advance(1min);
  blocked.join();
  BOOST_TEST(returned);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(advancing)

BOOST_AUTO_TEST_CASE(completes_what_is_due_and_nothing_else)
{
  context_in_virtual_time c;
  outcome due;
  outcome later;
  c.wheel.async_wait(30s, due.recorder());
  c.wheel.async_wait(30s + 2ms, later.recorder());
  BOOST_TEST(c.time.advance(30s - 1ns) == 0U);
  BOOST_TEST(due.pending());
  BOOST_TEST(c.time.advance(1ms) == 1U);
  BOOST_TEST(due.succeeded());
  BOOST_TEST(later.pending());
}

BOOST_AUTO_TEST_CASE(shows_each_handler_the_time_of_its_deadline)
{
  context_in_virtual_time c;
  const auto tick = c.wheel.options().tick;
  std::vector<time_point> seen;
  std::vector<time_point> deadlines;
  support::delays delays(0ns, 1h);
  for (int i = 0; i < 200; ++i) deadlines.push_back(c.wheel.now() + delays.next());
  for (const auto deadline : deadlines) {
    c.wheel.async_wait(deadline, [&, deadline](error_code) {
      BOOST_TEST((c.wheel.now() >= deadline));
      BOOST_TEST((c.wheel.now() - deadline < tick));
      seen.push_back(c.wheel.now());
    });
  }
  BOOST_TEST(c.time.advance(1h + tick) == deadlines.size());
  BOOST_TEST(std::is_sorted(seen.begin(), seen.end()));
}

BOOST_AUTO_TEST_CASE(includes_what_handlers_start)
{
  context_in_virtual_time c;
  std::uint64_t beats = 0;
  c.wheel.async_wait(1s, ticking{c.wheel, 1s, beats});
  c.time.advance(1ms);  // beyond the tick that the first wait may be rounded up to
  c.time.advance(60s);
  BOOST_TEST(beats == 60U);
}

BOOST_AUTO_TEST_CASE(completes_waits_of_no_length_that_handlers_start_one_from_another)
{
  context_in_virtual_time c;
  int depth = 0;
  std::function<void(error_code)> next = [&](error_code) {
    if (++depth < 200) c.wheel.async_wait(0s, next);
  };
  c.wheel.async_wait(1s, next);
  c.time.advance(1s + 1ms);
  BOOST_TEST(depth == 200);
}

BOOST_AUTO_TEST_CASE(runs_all_else_that_is_ready_before_time_goes_on)
{
  context_in_virtual_time c;
  std::vector<int> order;
  c.wheel.async_wait(1s, [&](error_code) {
    asio::post(c.context, [&] {
      asio::post(c.context, [&] {
        order.push_back(1);
        c.wheel.async_wait(500ms, [&](error_code) { order.push_back(2); });
      });
    });
  });
  c.wheel.async_wait(2s, [&](error_code) { order.push_back(3); });
  c.time.advance(3s);
  BOOST_TEST((order == std::vector<int>{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(runs_what_was_ready_before_it)
{
  context_in_virtual_time c;
  outcome wait;
  asio::post(c.context, [&] { c.wheel.async_wait(1s, wait.recorder()); });
  BOOST_TEST(c.time.advance(2s) == 1U);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(by_nothing_completes_what_is_due_now)
{
  context_in_virtual_time c;
  const auto start = c.time.now();
  for (const duration d : {duration::zero(), duration{-1h}, duration::min()}) {
    outcome due;
    c.wheel.async_wait(0s, due.recorder());
    BOOST_TEST(c.time.advance(d) == 1U);
    BOOST_TEST(due.succeeded());
    BOOST_TEST((c.time.now() == start));
  }
}

BOOST_AUTO_TEST_CASE(to_the_end_of_time_completes_all_but_what_never_comes)
{
  context_in_virtual_time c;
  outcome century;
  outcome last;
  outcome never_due;
  c.wheel.async_wait(100 * 365 * 24h, century.recorder());
  c.wheel.async_wait(time_point::max() - 10ms, last.recorder());
  c.wheel.async_wait(duration::max(), never_due.recorder());
  BOOST_TEST(c.time.advance(duration::max()) == 2U);
  BOOST_TEST(century.succeeded());
  BOOST_TEST(last.succeeded());
  BOOST_TEST(never_due.pending());
  BOOST_TEST(c.time.advance(duration::max()) == 0U);
  BOOST_TEST(!c.time.advance_to_next());
}

BOOST_AUTO_TEST_CASE(never_comes_to_the_end_of_time_itself)
{
  context_in_virtual_time c;
  c.time.advance(duration::max());
  BOOST_TEST((c.time.now() < time_point::max()));
  outcome never_due;
  c.wheel.async_wait(time_point::max(), never_due.recorder());
  wheel_timer timer(c.wheel, time_point::max());
  timer.async_wait(never_due.recorder());
  BOOST_TEST(c.time.advance(duration::max()) == 0U);
  BOOST_TEST(never_due.pending());
}

BOOST_AUTO_TEST_CASE(passes_over_what_was_cancelled)
{
  context_in_virtual_time c;
  outcome waits;
  wheel_timer timer(c.wheel, 10s);
  for (int i = 0; i < 100; ++i) timer.async_wait(waits.recorder());
  timer.cancel();
  BOOST_TEST(c.time.advance(1min) == 0U);
  BOOST_TEST(waits.calls == 100);
  BOOST_TEST((waits.error == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(restarts_a_context_that_was_out_of_work)
{
  context_in_virtual_time c;
  support::run_to_end(c.context);
  outcome wait;
  c.wheel.async_wait(1s, wait.recorder());
  c.time.advance(2s);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(completes_more_waits_of_one_tick_than_a_batch_holds)
{
  context_in_virtual_time c;
  constexpr int n = 1000;
  std::vector<int> order;
  for (int i = 0; i < n; ++i) c.wheel.async_wait(1min, [&, i](error_code) { order.push_back(i); });
  BOOST_TEST(c.time.advance(2min) == std::size_t{n});
  BOOST_TEST(order.size() == std::size_t{n});
  BOOST_TEST(std::is_sorted(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE(goes_on_after_an_exception_with_nothing_lost)
{
  context_in_virtual_time c;
  outcome waits;
  const auto deadline = c.wheel.now() + 10s;
  for (int i = 0; i < 100; ++i) c.wheel.async_wait(deadline, waits.recorder());
  c.wheel.async_wait(deadline, [](error_code) { throw std::runtime_error("handler"); });
  for (int i = 0; i < 100; ++i) c.wheel.async_wait(deadline, waits.recorder());
  outcome later;
  c.wheel.async_wait(20s, later.recorder());

  BOOST_CHECK_THROW(c.time.advance(1min), std::runtime_error);
  BOOST_TEST((c.time.now() - deadline < 1ms));
  BOOST_TEST(waits.calls < 200);
  c.time.advance(0s);
  BOOST_TEST(waits.calls == 200);
  BOOST_TEST(later.pending());
  BOOST_TEST(c.time.advance(11s) == 1U);
  BOOST_TEST(later.succeeded());
}

BOOST_AUTO_TEST_CASE(includes_what_a_handler_has_another_thread_start)
{
  context_in_virtual_time c;
  outcome wait;
  c.wheel.async_wait(
    1s, [&](error_code) { std::thread([&] { c.wheel.async_wait(1s, wait.recorder()); }).join(); });
  c.time.advance(3s);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(to_next_goes_from_wait_to_wait)
{
  context_in_virtual_time c;
  const auto start = c.time.now();
  const auto tick = c.wheel.options().tick;
  outcome waits;
  // Far apart, so that slots are cascaded on the way.
  const std::vector<duration> after{3ms, 1s, 10min, 24h, 365 * 24h};
  for (const duration d : after) c.wheel.async_wait(start + d, waits.recorder());
  for (std::size_t i = 0; i < after.size(); ++i) {
    BOOST_TEST(c.time.advance_to_next());
    BOOST_TEST(waits.calls == static_cast<int>(i) + 1);
    BOOST_TEST((c.time.now() >= start + after[i]));
    BOOST_TEST((c.time.now() - (start + after[i]) < tick));
  }
  const auto end = c.time.now();
  BOOST_TEST(!c.time.advance_to_next());
  BOOST_TEST((c.time.now() == end));
}

BOOST_AUTO_TEST_CASE(to_next_completes_what_is_due_and_then_one_tick)
{
  context_in_virtual_time c;
  outcome now;
  outcome next;
  outcome after;
  c.wheel.async_wait(0s, now.recorder());
  c.wheel.async_wait(1s, [&](error_code ec) {
    next.recorder()(ec);
    c.wheel.async_wait(0s, next.recorder());
  });
  c.wheel.async_wait(2s, after.recorder());
  BOOST_TEST(c.time.advance_to_next());
  BOOST_TEST(now.succeeded());
  BOOST_TEST(next.calls == 2);
  BOOST_TEST(after.pending());
}

BOOST_AUTO_TEST_CASE(by_a_day_takes_no_time_to_speak_of)
{
  context_in_virtual_time c;
  std::uint64_t beats = 0;
  constexpr std::uint64_t connections = 50;
  for (std::uint64_t i = 0; i < connections; ++i) {
    const auto phase = std::chrono::milliseconds{i * 7 % 1000};
    c.wheel.async_wait(phase, [&](error_code) {
      c.wheel.async_wait(30s, ticking{c.wheel, 30s, beats});
    });
  }
  c.time.advance(24h);
  BOOST_TEST(beats >= connections * (24 * 60 * 2 - 1));
  BOOST_TEST(beats <= connections * 24 * 60 * 2);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(what_follows_virtual_time)

BOOST_AUTO_TEST_CASE(timers_on_executors_of_their_own)
{
  context_in_virtual_time c;
  const auto strand = asio::make_strand(c.context);
  wheel_timer timer(strand, 1h);
  bool on_strand = false;
  timer.async_wait([&](error_code ec) { on_strand = !ec && strand.running_in_this_thread(); });
  c.time.advance(1h + 1ms);
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE(coroutines)
{
  context_in_virtual_time c;
  std::optional<duration> slept;
  asio::co_spawn(
    c.context,
    [&]() -> asio::awaitable<void> {
      const auto start = c.wheel.now();
      for (int i = 0; i < 10; ++i) co_await c.wheel.async_wait(1min);
      slept = c.wheel.now() - start;
    },
    asio::detached);
  c.time.advance(10min - 1ns);
  BOOST_TEST(!slept.has_value());
  c.time.advance(10ms);
  BOOST_REQUIRE(slept.has_value());
  BOOST_TEST((*slept >= 10min));
  BOOST_TEST((*slept <= 10min + 10ms));
}

BOOST_AUTO_TEST_CASE(a_read_that_is_to_end_at_a_deadline)
{
  context_in_virtual_time c;
  support::pair_socket reader(c.context);
  support::pair_socket writer(c.context);
  support::connect_pair(reader, writer);
  char byte = 0;
  outcome read;
  const auto start_read = [&] {
    read = {};
    asio::async_read(reader, asio::buffer(&byte, 1),
                     [&](error_code ec, std::size_t) { read.recorder()(ec); });
  };
  wheel_timer deadline(c.wheel, 1min);
  deadline.async_wait([&](error_code ec) {
    if (!ec) reader.cancel();
  });

  start_read();
  asio::write(writer, asio::buffer("x", 1));
  c.time.advance(30s);
  BOOST_TEST(read.succeeded());  // and the deadline is yet to come
  start_read();
  c.time.advance(29s);
  BOOST_TEST(read.pending());
  c.time.advance(2s);
  BOOST_TEST(read.aborted());
}

BOOST_AUTO_TEST_CASE(a_wheel_in_a_pool)
{
  asio::thread_pool pool(1);
  auto& wheel = make_wheel(pool);
  // Whatever the pool's thread had to do before this function, it has done when that is over.
  virtual_time time(wheel, [&] { asio::post(pool, asio::use_future).get(); });
  std::uint64_t beats = 0;
  for (int i = 0; i < 100; ++i) wheel.async_wait(1s, ticking{wheel, 1s, beats});
  time.advance(1ms);
  time.advance(100s);
  BOOST_TEST(beats == 10'000U);
  wheel.cancel_all();
}

BOOST_AUTO_TEST_SUITE_END()
