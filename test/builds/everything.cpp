// A user's program with all the timers in one file. test/builds.sh compiles and runs it with every
// compiler, standard and switch. Time is virtual, and there is one thread, so that it runs without
// threads, too. Other tests check the promises; here everything must compile, link and end right.
#include <asio_wheel.hpp>
#include <asio_wheel/fmt.hpp>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/writable_pipe.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;

namespace {

void expect(bool right, const char* claim)
{
  if (!right) throw std::runtime_error(claim);
}

struct fixture {
  asio::io_context context;
  wheel_timer_service& wheel = make_wheel(context, {.tick = 2ms, .slots = 64, .shards = 2});
  virtual_time time{wheel};
};

void waits()
{
  fixture f;
  expect(&use_wheel(f.context) == &f.wheel, "one wheel per context");
  expect(&use_wheel(asio::make_strand(f.context)) == &f.wheel, "a strand's wheel");
  int called = 0;
  asio::cancellation_signal signal;
  f.wheel.async_wait(5ms, [&](error_code ec) { called += !ec; });
  f.wheel.async_wait(
    f.wheel.now() + 5ms,
    asio::bind_executor(asio::make_strand(f.context), [&](error_code ec) { called += !ec; }));
  f.wheel.async_wait(1h, asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) {
                       called += ec == asio::error::operation_aborted;
                     }));
  std::future<void> future = f.wheel.async_wait(5ms, asio::use_future);
  signal.emit(asio::cancellation_type::terminal);
  f.time.advance(10ms);
  future.get();
  expect(called == 3, "each handler was called");
}

void timers()
{
  fixture f;
  int succeeded = 0;
  int aborted = 0;
  const auto count = [&](error_code ec) { ++(ec ? aborted : succeeded); };
  wheel_timer a(f.context, 1s);
  basic_wheel_timer<asio::io_context::executor_type> b(f.context, f.wheel.now() + 1s);
  a.async_wait(count);
  a.async_wait(count);
  expect(a.cancel_one() == 1, "one was cancelled");
  b.async_wait(count);
  expect(b.expires_after(2s) == 1, "a new expiry cancels");
  b.async_wait(count);
  wheel_timer c(std::move(b));
  expect(c.expiry() > a.expiry(), "the expiry moves along");
  f.time.advance(5s);
  error_code ec;
  c.wait(ec);
  expect(c.cancel() == 0 && succeeded == 2 && aborted == 2, "all timers' waits ended");
}

asio::awaitable<void> deadlines(fixture& f)
{
  asio::readable_pipe in(f.context);
  asio::writable_pipe out(f.context);
  asio::connect_pipe(in, out);
  std::array<char, 4> data{};
  const auto buffer = asio::buffer(data);
  const auto tuple = asio::as_tuple(asio::use_awaitable);

  const auto [aborted, none] = co_await in.async_read_some(buffer, cancel_after(1s, tuple));
  expect(aborted == asio::error::operation_aborted, "cancel_after cancels");
  const auto [late, nothing] = co_await in.async_read_some(buffer, timeout_after(1s, tuple));
  expect(late == asio::error::timed_out, "timeout_after times out");
  try {
    co_await in.async_read_some(buffer, timeout_at(f.wheel, f.wheel.now() + 1s));
    expect(false, "timeout_at times out");
  } catch (const boost::system::system_error& e) {
    expect(e.code() == asio::error::timed_out, "an exception says timed_out");
  }
  const auto total = asio::cancellation_type::total;
  expect(co_await (out.async_write_some(asio::buffer("abc", 3), asio::deferred) |
                   cancel_at(f.wheel.now() + 1s, total)) == 3,
         "written in time");
  expect(co_await in.async_read_some(buffer, cancel_after(1s)) == 3, "read in time");
}

asio::awaitable<void> repetitions(fixture& f)
{
  wheel_interval ticks(f.wheel, f.wheel.now() + 1s, 1s, missed_tick::skip);
  const time_point first = co_await ticks.async_tick();
  const time_point second = co_await ticks.async_tick(asio::use_awaitable);
  expect(second - first == 1s, "ticks are a period apart");

  keyed_scheduler<std::string> scheduler(f.wheel);
  int runs = 0;
  expect(scheduler.run_after("once", 1s, [&] { ++runs; }), "a task is accepted");
  expect(!scheduler.run_after("once", 1s, [] {}), "a second one is not");
  scheduler.run_every(
    "thrice", 1s, [&] { ++runs; }, 3);
  scheduler.run_every("never", 1s, [&] { runs = 100; });
  expect(scheduler.cancel("never") && scheduler.size() == 2, "a task was cancelled");
  co_await f.wheel.async_wait(5s);
  expect(runs == 4 && !scheduler.contains("thrice"), "all tasks ran");
}

asio::awaitable<void> signs_of_life(fixture& f)
{
  wheel_watchdog dog(f.wheel, 2s);
  const time_point start = f.wheel.now();
  co_await f.wheel.async_wait(1s);
  dog.touch();
  co_await dog.async_expired();
  expect(f.wheel.now() - start >= 3s, "a touch puts the expiry off");

  heartbeat beat(f.wheel, {.interval = 1s, .max_missed = 1});
  beat.received();
  expect(co_await beat.async_next() == heartbeat_event::send_ping, "first a ping");
  beat.sent();
  expect(co_await beat.async_next() == heartbeat_event::peer_lost, "then the end");
}

asio::awaitable<void> connections(fixture& f)
{
  simulated_acceptor acceptor(f.wheel);
  simulated_stream client = acceptor.connect({.latency = 20ms, .jitter = 5ms, .loss = 0.1});
  simulated_stream server = co_await acceptor.async_accept();
  client.inject_after(1s, simulated_fault::reset);
  co_await client.async_write_some(asio::buffer("hello", 5));
  std::array<char, 8> bytes{};
  expect(co_await server.async_read_some(asio::buffer(bytes)) == 5, "bytes arrive");
  error_code ec;
  co_await server.async_read_some(asio::buffer(bytes),
                                  asio::redirect_error(asio::use_awaitable, ec));
  expect(ec == asio::error::connection_reset, "a fault comes");
}

template <class Coroutine>
void run(Coroutine coroutine)
{
  fixture f;
  std::future<void> end = asio::co_spawn(f.context, coroutine(f), asio::use_future);
  f.time.advance(1min);
  end.get();
}

void figures()
{
  fixture f;
  f.wheel.async_wait(1s, asio::detached);
  f.wheel.async_wait(duration::max(), asio::detached);
  f.time.advance_to_next();
  expect(f.wheel.pending() == 1 && f.wheel.cancel_all() == 1, "what is left is cancelled");
  const wheel_stats stats = f.wheel.stats();
  expect(stats.expired == 1 && stats.lateness.count() == 1, "counters");
  fmt::print("{}\n{}\n", f.wheel.options(), stats);
  expect(make_error_code(wheel_errc::too_many_pending).message() != "", "an error has a text");
  try {
    make_wheel(f.context, {.tick = 0ns});
    expect(false, "a second wheel is refused");
  } catch (const std::exception&) {
  }
}

}  // namespace

int main()
{
  try {
    waits();
    timers();
    run(deadlines);
    run(repetitions);
    run(signs_of_life);
    run(connections);
    figures();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "wrong: %s\n", e.what());
    return 1;
  }
}
