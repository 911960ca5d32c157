// Deadlines of operations whose handlers have an executor of their own: when they come beside many
// other waits, and what an executor may lack or refuse.
#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/executor.hpp>
#include <boost/asio/io_context_strand.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::manual_operation;
using support::result;
using support::wheel_in_virtual_time;

namespace {

/// What every executor must have, and nothing else.
struct least_executor {
  asio::io_context* context;

  template <class Function>
  void execute(Function f) const
  {
    auto kept = std::make_shared<Function>(std::move(f));
    asio::post(*context, [kept] { (*kept)(); });
  }
  bool operator==(const least_executor&) const noexcept = default;
};

/// Has a context, and may refuse. It does not promise never to call a function at once.
struct refusing_executor {
  asio::io_context* context;
  const bool* refuses;

  template <class Function>
  void execute(Function f) const
  {
    if (*refuses) throw std::runtime_error("full");
    least_executor{context}.execute(std::move(f));
  }
  asio::execution_context& query(asio::execution::context_t) const noexcept { return *context; }
  bool operator==(const refusing_executor&) const noexcept = default;
};

/// An operation with a deadline after 10 ms, whose handler is on a strand.
struct deadline_on_a_strand : wheel_in_virtual_time {
  deadline_on_a_strand()
  {
    operation.async_run(
      timeout_after(10ms, asio::bind_executor(asio::make_strand(context), outcome.recorder())));
  }

  manual_operation operation{context.get_executor()};
  result outcome;
};

/// An operation that goes on, and whose handler's executor refuses from the moment it is asked to
/// stop. It was to be abandoned after 10 ms.
struct refused_abandonment : wheel_in_virtual_time {
  refused_abandonment()
  {
    operation.obeys = false;
    operation.when_cancelled = [this] { refuses = true; };
    operation.async_run(abandon_after(
      10ms, asio::bind_executor(refusing_executor{&context, &refuses}, outcome.recorder())));
    time.advance(30ms);
    BOOST_TEST(operation.seen.size() == 1U);
    BOOST_TEST(outcome.pending());
    BOOST_TEST(wheel.pending() == 0U);
    refuses = false;
  }

  manual_operation operation{context.get_executor()};
  result outcome;
  bool refuses = false;
};

/// A result whose default value needs memory.
struct needs_memory {
  needs_memory()
  {
    if (std::exchange(lacks_memory, false)) throw std::bad_alloc();
  }
  static inline bool lacks_memory = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(a_deadline_elsewhere)

BOOST_AUTO_TEST_CASE(comes_in_its_tick_beside_a_burst)
{
  deadline_on_a_strand c;
  for (int i = 0; i < 1500; ++i) c.wheel.async_wait(10ms, [](error_code) {});
  c.time.advance(10ms);
  BOOST_TEST(c.outcome.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(comes_in_its_tick_beside_waits_without_end)
{
  deadline_on_a_strand c;
  int waits = 0;
  std::function<void(error_code)> again = [&](error_code) {
    if (c.outcome.pending() && ++waits < 100'000) c.wheel.async_wait(0ms, again);
  };
  c.wheel.async_wait(10ms, again);
  c.time.advance(10ms);
  BOOST_TEST(c.outcome.failed(asio::error::timed_out));
  BOOST_TEST(waits < 100'000);
}

BOOST_AUTO_TEST_CASE(abandons_once_the_executor_takes_it)
{
  refused_abandonment c;
  c.time.advance(1ms);
  BOOST_TEST(c.outcome.failed(asio::error::timed_out));
  BOOST_TEST(c.wheel.stats().abandoned == 1U);
  c.operation.complete({}, 1);
  c.time.advance(0ms);
  BOOST_TEST(c.outcome.calls == 1);
  BOOST_TEST(c.wheel.stats().abandoned == 0U);
}

BOOST_AUTO_TEST_CASE(that_was_refused_gives_way_to_a_result)
{
  refused_abandonment c;
  c.operation.complete({}, 7);
  c.time.advance(0ms);
  BOOST_TEST(c.outcome.succeeded(7));
  c.time.advance(10ms);
  BOOST_TEST(c.outcome.calls == 1);
}

BOOST_AUTO_TEST_CASE(that_was_refused_outlives_cancel_all)
{
  refused_abandonment c;
  BOOST_TEST(c.wheel.cancel_all() == 0U);
  c.time.advance(1ms);
  BOOST_TEST(c.outcome.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(that_was_refused_goes_with_its_operation)
{
  refused_abandonment c;
  c.operation.drop();
  c.time.advance(10ms);
  BOOST_TEST(c.outcome.pending());
}

BOOST_AUTO_TEST_CASE(that_was_refused_goes_with_the_context)
{
  std::optional<manual_operation> operation;
  asio::io_context other;
  operation.emplace(other.get_executor());
  operation->obeys = false;
  bool refuses = false;
  operation->when_cancelled = [&] { refuses = true; };
  result outcome;
  {
    wheel_in_virtual_time w;
    operation->async_run(abandon_after(
      w.wheel, 10ms, asio::bind_executor(refusing_executor{&other, &refuses}, outcome.recorder())));
    for (int i = 0; i < 20; ++i) {
      w.time.advance(1ms);
      other.restart();
      other.poll();
    }
    BOOST_TEST(operation->seen.size() == 1U);
  }
  refuses = false;
  BOOST_TEST(outcome.pending());
  operation->complete({}, 3);
  other.restart();
  other.poll();
  BOOST_TEST(outcome.succeeded(3));
}

BOOST_AUTO_TEST_CASE(abandons_once_there_is_memory_for_the_results)
{
  wheel_in_virtual_time w;
  std::function<void()> kept;
  int calls = 0;
  const auto initiate = [&](auto handler) {
    auto h = std::make_shared<decltype(handler)>(std::move(handler));
    kept = [h] {};
  };
  auto token = abandon_after(
    w.wheel, 10ms, [&](error_code ec, needs_memory) { calls += ec == asio::error::timed_out; });
  asio::async_initiate<decltype(token), void(error_code, needs_memory)>(initiate, token);
  needs_memory::lacks_memory = true;
  w.time.advance(10ms);
  BOOST_TEST(calls == 0);
  w.time.advance(1ms);
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(takes_the_least_executor)
{
  wheel_in_virtual_time w;
  const least_executor ex{&w.context};
  asio::steady_timer never(w.context, asio::steady_timer::time_point::max());
  error_code timed_out;
  error_code abandoned;
  error_code guarded;
  const auto store = [&](error_code& into) {
    return asio::bind_executor(ex, [&into](error_code ec) { into = ec; });
  };
  wheel_watchdog dog(w.wheel, 10ms);
  never.async_wait(timeout_after(10ms, store(timed_out)));
  never.async_wait(abandon_after(10ms, store(abandoned)));
  never.async_wait(dog.guard(store(guarded)));
  w.time.advance(10ms);
  BOOST_TEST(timed_out == asio::error::timed_out);
  BOOST_TEST(abandoned == asio::error::timed_out);
  BOOST_TEST(guarded == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(needs_no_wheel_of_an_executor_if_it_is_given_one)
{
  wheel_in_virtual_time w;
  const bool refuses = false;
  std::function<void()> kept;
  const auto initiate = [&](auto handler) {
    auto h = std::make_shared<decltype(handler)>(std::move(handler));
    kept = [h] {};
  };
  error_code outcome;
  BOOST_TEST((&use_wheel(refusing_executor{&w.context, &refuses}) == &w.wheel));
  auto token = abandon_after(w.wheel, 10ms,
                             asio::bind_executor(refusing_executor{&w.context, &refuses},
                                                 [&](error_code ec) { outcome = ec; }));
  asio::async_initiate<decltype(token), void(error_code)>(initiate, token);
  w.time.advance(10ms);
  BOOST_TEST(outcome == asio::error::timed_out);
}

// Asio's executors of the older kind are no execution::executor.
BOOST_AUTO_TEST_CASE(comes_to_executors_of_the_older_kind)
{
  const auto check = [](auto ex_of) {
    wheel_in_virtual_time w;
    const auto ex = ex_of(w.context);
    std::array<error_code, 3> ends;
    const auto store = [&](std::size_t i) {
      return asio::bind_executor(ex, [&ends, i](error_code ec) { ends.at(i) = ec; });
    };
    asio::steady_timer never(w.context, asio::steady_timer::time_point::max());
    wheel_watchdog dog(w.wheel, 10ms);
    never.async_wait(timeout_after(w.wheel, 10ms, store(0)));
    never.async_wait(abandon_after(w.wheel, 10ms, store(1)));
    never.async_wait(dog.guard(store(2)));
    w.time.advance(10ms);
    for (const error_code& ec : ends) BOOST_TEST(ec == asio::error::timed_out);
    BOOST_TEST((&use_wheel(ex) == &w.wheel));
  };
  check([](asio::io_context& c) { return asio::io_context::strand(c); });
  check([](asio::io_context& c) { return asio::executor(c.get_executor()); });
  check([](asio::io_context& c) {
    return asio::strand<asio::executor>(asio::executor(c.get_executor()));
  });
}

BOOST_AUTO_TEST_CASE(comes_to_an_older_strand_of_another_context_after_run_has_returned)
{
  wheel_in_virtual_time w;
  asio::io_context other;
  asio::io_context::strand strand(other);
  asio::steady_timer never(other, asio::steady_timer::time_point::max());
  error_code end;
  never.async_wait(
    timeout_after(w.wheel, 10ms, asio::bind_executor(strand, [&](error_code ec) { end = ec; })));
  w.time.advance(10ms);  // and nobody runs this context any more
  other.run();
  BOOST_TEST(end == asio::error::timed_out);
}

BOOST_AUTO_TEST_SUITE_END()
