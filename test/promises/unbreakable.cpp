// Promise 10, unbreakable: exceptions, failed allocations and destruction in any order.
#include <algorithm>
#include <array>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "support/from_handler.hpp"
#include "support/heap.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/scale.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::from_handler;
using support::outcome;
using support::run_through_exceptions;

namespace {

/// A handler that counts itself, and throws every third time.
class every_third {
public:
  void operator()()
  {
    if (++calls_ % 3 == 0) throw from_handler();
  }
  [[nodiscard]] int calls() const { return calls_; }

private:
  int calls_ = 0;
};

/// An allocator without memory.
template <class T>
struct empty_allocator {
  using value_type = T;
  empty_allocator() = default;
  template <class U>
  empty_allocator(const empty_allocator<U>&) noexcept
  {}
  [[noreturn]] T* allocate(std::size_t) { throw std::bad_alloc(); }
  void deallocate(T*, std::size_t) noexcept {}
  template <class U>
  bool operator==(const empty_allocator<U>&) const noexcept
  {
    return true;
  }
};

/// A context that can be shut down before its destruction, which shuts it down again.
struct stoppable_context : asio::io_context {
  using asio::execution_context::shutdown;
};

/// Whether so many waits start as need more memory several times, with so many calls of operator
/// new. Those that do not, leave no trace.
bool starts_all(std::size_t calls)
{
  // With AddressSanitizer each wait is allocated by itself.
  constexpr std::size_t many = support::under_address_sanitizer ? 40 : 5000;
  context_with_wheel c;
  asio::cancellation_signal signal;
  wheel_timer timer(c.context, 2ms);
  std::size_t started = 0;
  std::size_t ended = 0;
  const auto count = [&ended](error_code) { ++ended; };
  {
    const support::heap_limit limit(calls);
    try {
      c.wheel.async_wait(1ms, asio::bind_cancellation_slot(signal.slot(), count));
      ++started;
      while (started < many) {
        if (started % 2 == 0) {
          c.wheel.async_wait(2ms, count);
        } else {
          timer.async_wait(count);
        }
        ++started;
      }
    } catch (const std::bad_alloc&) {
    }
  }
  BOOST_TEST(c.wheel.pending() == started);
  // Everything goes on normally.
  c.wheel.async_wait(1ms, count);
  timer.async_wait(count);
  support::run_to_end(c.context);
  BOOST_TEST(ended == started + 2);
  BOOST_TEST(c.wheel.stats().started == started + 2);
  return started == many;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(unbreakable)

BOOST_AUTO_TEST_CASE(an_exception_leaves_run_and_no_wait_is_lost)
{
  constexpr int many = 300;
  context_with_wheel c;
  every_third handler;
  const auto deadline = c.wheel.now() + 2ms;
  for (int i = 0; i < many; ++i) c.wheel.async_wait(deadline, [&](error_code) { handler(); });
  BOOST_TEST(run_through_exceptions(c.context) == many / 3);
  BOOST_TEST(handler.calls() == many);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(an_exception_from_an_aborted_handler_loses_none)
{
  constexpr int many = 300;
  context_with_wheel c;
  every_third handler;
  for (int i = 0; i < many; ++i) c.wheel.async_wait(1h, [&](error_code) { handler(); });
  BOOST_TEST(c.wheel.cancel_all() == std::size_t{many});
  BOOST_TEST(run_through_exceptions(c.context) == many / 3);
  BOOST_TEST(handler.calls() == many);
}

BOOST_AUTO_TEST_CASE(an_exception_keeps_the_order_of_the_others)
{
  // More than a batch, with exceptions in two of them.
  for (const bool cancelled : {false, true}) {
    context_with_wheel c;
    std::vector<int> order;
    const auto deadline = c.wheel.now() + (cancelled ? 1h : 30ms);
    for (int i = 0; i < 200; ++i) {
      c.wheel.async_wait(deadline, [&, i](error_code) {
        order.push_back(i);
        if (i == 3 || i == 100) throw from_handler();
      });
    }
    if (cancelled) BOOST_TEST(c.wheel.cancel_all() == 200U);
    BOOST_TEST(run_through_exceptions(c.context) == 2);
    BOOST_TEST(order.size() == 200U);
    BOOST_TEST(std::is_sorted(order.begin(), order.end()));
  }
}

BOOST_AUTO_TEST_CASE(an_exception_leaves_the_wheel_running)
{
  context_with_wheel c;
  outcome later;
  c.wheel.async_wait(1ms, [](error_code) { throw from_handler(); });
  c.wheel.async_wait(5ms, later.recorder());
  BOOST_CHECK_THROW(c.context.run(), from_handler);
  support::run_to_end(c.context);
  BOOST_TEST(later.succeeded());
}

BOOST_AUTO_TEST_CASE(a_handler_without_memory_starts_nothing)
{
  context_with_wheel c;
  wheel_timer timer(c.context, 1h);
  const auto handler = [] {
    return asio::bind_allocator(empty_allocator<void>{},
                                [](error_code) { BOOST_TEST(false, "called"); });
  };
  BOOST_CHECK_THROW(c.wheel.async_wait(1ms, handler()), std::bad_alloc);
  BOOST_CHECK_THROW(timer.async_wait(handler()), std::bad_alloc);
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.wheel.stats().started == 0U);
  BOOST_TEST(timer.cancel() == 0U);
  support::run_to_end(c.context);
}

BOOST_AUTO_TEST_CASE(a_heap_that_runs_out_at_any_point_starts_all_or_nothing)
{
  std::size_t calls = 0;
  // Each time in a thread that has no memory at hand yet.
  for (bool all = false; !all; ++calls) std::thread([&] { all = starts_all(calls); }).join();
  BOOST_TEST(calls > 8U);
}

BOOST_AUTO_TEST_CASE(a_thread_without_memory_for_a_shard_uses_that_of_another)
{
  wheel_options options;
  options.shards = 64;
  context_with_wheel c(options);
  wheel_timer timer(c.context, 1h);
  outcome wait;
  timer.async_wait(wait.recorder());
  std::size_t cancelled = 0;
  std::thread([&] {
    const support::heap_limit none(0);
    cancelled = timer.cancel();
  }).join();
  BOOST_TEST(cancelled == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(a_heap_that_runs_out_does_not_hinder_a_cancel)
{
  context_with_wheel c;
  wheel_timer timer(c.context, 1h);
  asio::cancellation_signal signal;
  std::array<outcome, 4> waits;
  timer.async_wait(waits[0].recorder());
  timer.async_wait(waits[1].recorder());
  c.wheel.async_wait(1h, asio::bind_cancellation_slot(signal.slot(), waits[2].recorder()));
  c.wheel.async_wait(1h, waits[3].recorder());
  c.context.poll();
  std::size_t cancelled = 0;
  {
    const support::heap_limit none(0);
    cancelled += timer.cancel_one();
    cancelled += timer.cancel();
    signal.emit(asio::cancellation_type::terminal);
    cancelled += c.wheel.cancel_all();
  }
  BOOST_TEST(cancelled == 3U);
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(a_heap_that_runs_out_while_the_loop_runs_loses_no_wait)
{
  context_with_wheel c;
  int succeeded = 0;
  for (int i = 0; i < 200; ++i) {
    c.wheel.async_wait(1ms, [&](error_code ec) { succeeded += ec ? 0 : 1; });
  }
  {
    const support::heap_limit none(0);
    try {
      c.context.run_for(5ms);
    } catch (const std::bad_alloc&) {
    }
  }
  outcome later;
  c.wheel.async_wait(1ms, later.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(succeeded == 200);
  BOOST_TEST(later.succeeded());
}

BOOST_AUTO_TEST_CASE(a_timer_may_outlive_its_context)
{
  std::optional<wheel_timer> timer;
  const auto alive = std::make_shared<int>(0);
  {
    asio::io_context context;
    timer.emplace(context, 1h);
    timer->async_wait([alive](error_code) { ++*alive; });
    context.poll();
  }
  BOOST_TEST(alive.use_count() == 1);
  BOOST_TEST(timer->cancel() == 0U);
  BOOST_TEST(timer->cancel_one() == 0U);
  BOOST_TEST(timer->expires_after(1ms) == 0U);
  timer->async_wait([alive](error_code) { ++*alive; });
  BOOST_TEST(alive.use_count() == 1);
  BOOST_TEST(*alive == 0);
  timer->wait();
  wheel_timer moved(std::move(*timer));
  timer.reset();
  BOOST_TEST(moved.expires_at(wheel_timer::time_point::max()) == 0U);
}

BOOST_AUTO_TEST_CASE(handlers_may_own_timers_and_start_waits_while_the_context_goes)
{
  struct last_will {
    wheel_timer* timer;
    wheel_timer_service* wheel;
    outcome* started;
    ~last_will()
    {
      timer->async_wait(started->recorder());
      wheel->async_wait(1ms, started->recorder());
      timer->cancel();
      wheel->cancel_all();
    }
  };
  outcome started;
  outcome waited;
  {
    auto c = std::make_unique<context_with_wheel>();
    auto timer = std::make_shared<wheel_timer>(c->context, 1h);
    const auto will = std::make_shared<last_will>(timer.get(), &c->wheel, &started);
    for (int i = 0; i < 3; ++i) {
      c->wheel.async_wait(1h, [timer, will, &waited](error_code ec) { waited.recorder()(ec); });
      timer->async_wait([timer, will, &waited](error_code ec) { waited.recorder()(ec); });
    }
  }
  BOOST_TEST(started.pending());
  BOOST_TEST(waited.pending());
}

BOOST_AUTO_TEST_CASE(a_context_may_go_with_completions_on_their_way)
{
  constexpr int many = 500;
  outcome last;
  {
    context_with_wheel c;
    int ended = 0;
    for (int i = 0; i < many; ++i) {
      c.wheel.async_wait(0s, [&](error_code) { ++ended; });
      c.wheel.async_wait(1h, [&](error_code) { ++ended; });
    }
    c.wheel.async_wait(0s, last.recorder());
    c.wheel.cancel_all();
    for (int i = 0; i < 3; ++i) c.context.poll_one();
    BOOST_TEST(ended < 2 * many);
  }
  BOOST_TEST(last.pending());
}

BOOST_AUTO_TEST_CASE(a_context_may_go_with_handlers_of_a_living_one)
{
  asio::io_context handlers_context;
  const auto strand = asio::make_strand(handlers_context);
  outcome never;
  {
    context_with_wheel c;
    c.wheel.async_wait(1h, asio::bind_executor(strand, never.recorder()));
    c.wheel.async_wait(1h, asio::bind_executor(handlers_context.get_executor(), never.recorder()));
    BOOST_TEST(handlers_context.poll() == 0U);
    BOOST_TEST(!handlers_context.stopped());
  }
  support::run_to_end(handlers_context);
  BOOST_TEST(never.pending());
}

BOOST_AUTO_TEST_CASE(a_pool_may_go_with_waits_pending)
{
  const auto alive = std::make_shared<int>(0);
  {
    asio::thread_pool pool(2);
    auto& wheel = use_wheel(pool);
    for (int i = 0; i < 50; ++i) wheel.async_wait(1h, [alive](error_code) { ++*alive; });
    pool.stop();
    pool.join();
  }
  BOOST_TEST(*alive == 0);
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(shutting_down_twice_is_shutting_down_once)
{
  outcome before;
  outcome after;
  {
    stoppable_context context;
    auto& wheel = make_wheel(context);
    wheel_timer timer(wheel);
    timer.expires_after(1h);
    timer.async_wait(before.recorder());
    wheel.async_wait(1h, before.recorder());
    context.shutdown();
    BOOST_TEST(timer.cancel() == 0U);
    BOOST_TEST(wheel.cancel_all() == 0U);
    BOOST_TEST(wheel.pending() == 0U);
    wheel.async_wait(1ms, after.recorder());
    timer.async_wait(after.recorder());
    context.shutdown();
    BOOST_TEST(wheel.pending() == 0U);
  }
  BOOST_TEST(before.pending());
  BOOST_TEST(after.pending());
}

BOOST_AUTO_TEST_SUITE_END()
