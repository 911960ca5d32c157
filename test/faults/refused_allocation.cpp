// Fault: memory is refused, for every allocation of every operation in turn, first by the handler's
// allocator, then by the heap; while operations start, and while the loop runs.
//
// A refusal during a start starts nothing. A refusal while the loop runs leaves run() as
// std::bad_alloc. It loses a handler only on the way to that handler's own executor, as with Asio's
// operations.
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "faults/every_operation.hpp"
#include "support/heap.hpp"
#include "support/ledger.hpp"
#include "support/outcome.hpp"
#include "support/own_executor.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace faults;
using namespace std::chrono_literals;
using support::heap_limit;

namespace {

constexpr std::size_t larger_than_what_is_recycled = 1024;

/// Takes memory for each function from operator new, which the test limits; Asio's executors do
/// not.
struct heap_executor {
  asio::io_context* context;

  template <class Function>
  void execute(Function&& f) const
  {
    auto kept = std::make_shared<std::decay_t<Function>>(std::forward<Function>(f));
    asio::post(*context, [kept] { (*kept)(); });
  }
  [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept
  {
    return *context;
  }
  bool operator==(const heap_executor&) const = default;
};

/// Posts its handlers, which takes memory from the heap.
struct wait_with_a_heap_executor {
  explicit wait_with_a_heap_executor(wheel_timer_service& wheel)
    : timer(wheel, heap_executor{&static_cast<asio::io_context&>(wheel.context())})
  {
    timer.expires_after(a_while);
  }

  template <class Handler>
  void start(Handler&& h)
  {
    timer.async_wait(std::forward<Handler>(h));
  }

  basic_wheel_timer<heap_executor> timer;
};

using every_use_of_the_heap = decltype(std::tuple_cat(
  std::declval<every_operation>(), std::declval<std::tuple<wait_with_a_heap_executor>>()));

/// Calls `round(limit)` with a heap that refuses the first allocation, then the second, and so on,
/// until nothing is refused. Does so twice: refuses only that allocation, and all that follow it,
/// too.
template <class Round>
void refuse_each_call(Round round)
{
  // Makes all allocations that a process makes only once. Twice, because the test's own counters
  // may be among them.
  for (int i = 0; i < 2; ++i) round(heap_limit::unlimited - 1, 0);
  for (const std::size_t refusals : {std::size_t{1}, heap_limit::unlimited}) {
    bool refused = true;
    for (std::size_t calls = 0; refused; ++calls) {
      const std::size_t before = support::heap_in_use();
      refused = round(calls, refusals);
      const std::size_t after = support::heap_in_use();
      BOOST_TEST(after == before, "after " << calls << " calls: " << after - before << " bytes");
    }
  }
}

/// Calls `act` with a limited heap, again and again while it throws, up to `times`. Returns how
/// often it threw.
template <class Act>
std::size_t bad_allocs(std::size_t times, Act act)
{
  std::size_t thrown = 0;
  while (thrown < times) {
    try {
      act();
      break;
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
  }
  return thrown;
}

template <class Operation>
bool start_with_limited_heap(std::size_t calls, std::size_t refusals)
{
  scene<Operation> s;
  asio::cancellation_signal signal;
  bool refused;
  {
    const heap_limit limit(calls, refusals);
    bad_allocs(1, [&] {
      s.make();
      s.start(counted<>(s));
      s.start(counted<larger_than_what_is_recycled>(s));
      s.start(asio::bind_cancellation_slot(signal.slot(), counted<>(s)));
    });
    refused = limit.was_reached();
  }
  BOOST_TEST(s.living() == s.started);
  // The deadline is refused because there is no memory for it, and its operation has started.
  BOOST_TEST(s.wheel.pending() + s.wheel.stats().rejected == s.started);
  if (!s.operation) s.make();
  s.start(counted<>(s));
  support::run_to_end(s.context);
  BOOST_TEST(s.called == s.started);
  BOOST_TEST(s.living() == 0U);
  BOOST_TEST(s.wheel.pending() == 0U);
  return refused;
}

template <class Operation>
bool run_with_limited_heap(std::size_t calls, std::size_t refusals)
{
  scene<Operation> s;
  asio::cancellation_signal signal;
  s.make();
  for (int i = 0; i < 70; ++i) s.start(counted<>(s));
  s.start(asio::bind_cancellation_slot(signal.slot(), counted<>(s)));
  bool refused;
  {
    const heap_limit limit(calls, refusals);
    // As long as there is none, each pass tries again.
    const auto time = refusals == 1 ? std::chrono::nanoseconds(support::patience) : 20ms;
    bad_allocs(3, [&] { s.context.run_for(time); });
    refused = limit.was_reached();
  }
  // It needs no other start to go on.
  support::run_to_end(s.context);
  BOOST_TEST(s.called == s.started);
  BOOST_TEST(s.living() == 0U);
  BOOST_TEST(s.wheel.pending() == 0U);
  return refused;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(refused_allocation)

BOOST_AUTO_TEST_CASE_TEMPLATE(by_the_handlers_allocator_starts_nothing, Operation,
                              every_asynchronous_operation)
{
  bool refused = true;
  for (std::size_t n = 0; refused; ++n) {
    scene<Operation> s;
    s.make();
    support::ledger books;
    books.refused = n;
    const auto handler = [&] {
      return asio::bind_allocator(support::booking_allocator<void>(books), counted<>(s));
    };
    refused = bad_allocs(1, [&] {
                s.start(handler());
                s.start(handler());
              }) != 0;
    BOOST_TEST(s.living() == s.started);
    BOOST_TEST(s.wheel.pending() == s.started);
    books.refused = support::ledger::unlimited;
    s.start(handler());
    support::run_to_end(s.context);
    BOOST_TEST(s.called == s.started);
    BOOST_TEST(books.outstanding == 0U);
    BOOST_TEST(s.living() == 0U);
  }
}

// A handler needs memory again only on the way to an executor of its own.
BOOST_AUTO_TEST_CASE(by_the_handlers_allocator_on_its_way_makes_that_handler_late)
{
  scene<wait_with_an_executor> s;
  s.make();
  support::ledger books;
  for (int i = 0; i < 3; ++i)
    s.start(asio::bind_allocator(support::booking_allocator<void>(books), counted<>(s)));
  books.refused = books.taken + 1;  // the second one's
  support::run_to_end(s.context);
  BOOST_TEST(s.called == 3U);
  BOOST_TEST(s.living() == 0U);
  BOOST_TEST(books.outstanding == 0U);
}

// A deadline goes to its handler's executor, too, and stays due until that takes it.
BOOST_AUTO_TEST_CASE(by_its_executor_to_a_deadline_makes_it_late)
{
  scene<operation_that_is_cancelled> s;
  virtual_time time(s.wheel);
  s.make();
  bool has_memory = true;
  const std::function<bool()> ask = [&] {
    if (!has_memory) throw std::bad_alloc();
    return true;
  };
  s.start(asio::bind_executor(support::own_executor(s.context.get_executor(), ask), counted<>(s)));
  s.context.poll();
  has_memory = false;
  time.advance(a_while * 2);
  has_memory = true;
  BOOST_TEST(s.wheel.pending() == 1U);
  BOOST_TEST(s.called == 0U);
  time.advance(2 * s.wheel.options().tick);  // the next pass asks again
  BOOST_TEST(s.called == 1U);
  BOOST_TEST(s.wheel.pending() == 0U);
  BOOST_TEST(s.living() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(by_the_heap_starts_nothing, Operation, every_use_of_the_heap)
{
  refuse_each_call(start_with_limited_heap<Operation>);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(by_the_heap_while_the_loop_runs_is_made_up_for, Operation,
                              every_use_of_the_heap)
{
  refuse_each_call(run_with_limited_heap<Operation>);
}

BOOST_AUTO_TEST_CASE(of_a_conversion_leaves_a_timer_its_waits)
{
  using strand = asio::strand<asio::io_context::executor_type>;
  refuse_each_call([](std::size_t calls, std::size_t refusals) {
    scene<plain_wait> s;
    basic_wheel_timer<strand> typed(s.wheel, asio::make_strand(s.context));
    std::optional<wheel_timer> any;
    typed.expires_after(1ms);
    typed.async_wait(counted<>(s));
    bool refused;
    {
      const heap_limit limit(calls, refusals);
      bad_allocs(1, [&] { any.emplace(std::move(typed)); });
      refused = limit.was_reached();
    }
    BOOST_TEST(any.has_value() != refused);
    BOOST_TEST(s.wheel.pending() == 1U);
    BOOST_TEST((any ? any->cancel() : typed.cancel()) == 1U);
    support::run_to_end(s.context);
    BOOST_TEST(s.called == 1U);
    return refused;
  });
}

// Refuses only the first allocations, of the service and its shards. Then comes a strand, and in
// Asio 1.81 a strand without memory destroys members that it has not initialised.
BOOST_AUTO_TEST_CASE(of_a_wheel_leaves_the_context_without)
{
  const auto check = [](auto make) {
    for (std::size_t calls = 0; calls < 3; ++calls) {
      asio::io_context context;
      std::size_t thrown;
      {
        const heap_limit limit(calls, 1);
        thrown = bad_allocs(1, [&] { make(context); });
      }
      BOOST_TEST(thrown == 1U);
      BOOST_TEST(!asio::has_service<wheel_timer_service>(context));
      support::outcome wait;
      use_wheel(context).async_wait(1ms, wait.recorder());
      support::run_to_end(context);
      BOOST_TEST(wait.succeeded());
    }
  };
  check([](asio::io_context& context) { make_wheel(context); });
  check([](asio::io_context& context) { use_wheel(context); });
  check([](asio::io_context& context) { wheel_timer timer(context, 1ms); });
}

BOOST_AUTO_TEST_CASE(of_a_repeating_task_ends_it_and_frees_its_key)
{
  refuse_each_call([](std::size_t calls, std::size_t refusals) {
    support::context_with_wheel c;
    keyed_scheduler<int> scheduler(c.wheel);
    tally books;
    std::size_t thrown;
    bool refused;
    scheduler.run_every(1, 1ms, counted<>(books), 3);
    {
      const heap_limit limit(calls, refusals);
      thrown = bad_allocs(3, [&] { c.context.run_for(support::patience); });
      refused = limit.was_reached();
    }
    support::run_to_end(c.context);
    BOOST_TEST((books.called == 3U || thrown != 0));
    BOOST_TEST(books.living() == 0U);
    BOOST_TEST(scheduler.size() == 0U);
    BOOST_TEST(scheduler.run_after(1, 1ms, counted<>(books)));
    support::run_to_end(c.context);
    BOOST_TEST(books.living() == 0U);
    return refused;
  });
}

// The guard's wait has ended, the watchdog is touched before its deadlines begin, and the new time
// has no memory.
BOOST_AUTO_TEST_CASE(to_a_deadline_that_its_guard_takes_back_ends_the_operation_as_refused)
{
  std::vector<std::byte> memory(1U << 20U);
  std::pmr::monotonic_buffer_resource arena(memory.data(), memory.size(),
                                            std::pmr::null_memory_resource());
  const std::pmr::polymorphic_allocator<> of_arena(&arena);
  support::wheel_in_virtual_time c;
  wheel_watchdog dog(c.wheel, 10ms);
  asio::steady_timer never(c.context, asio::steady_timer::time_point::max());
  support::outcome guarded;
  std::optional<heap_limit> limit;
  std::size_t refused = 0;
  never.async_wait(
    dog.guard(asio::bind_executor(asio::make_strand(c.context), guarded.recorder())));
  c.wheel.async_wait(10ms, [&](error_code) {
    dog.touch();
    limit.emplace(0U);
    // In other slots than that of the new time.
    for (int i = 0; refused == 0 && i < 10'000; ++i)
      refused += bad_allocs(1, [&] {
        c.wheel.async_wait(20ms + i % 900 * 1ms, asio::bind_allocator(of_arena, [](error_code) {}));
      });
  });
  c.time.advance(10ms);
  limit.reset();
  BOOST_TEST(refused == 1U);
  BOOST_TEST(guarded.error == make_error_code(wheel_errc::too_many_pending));
}

BOOST_AUTO_TEST_CASE(in_virtual_time_moves_nothing_early_and_loses_nothing)
{
  refuse_each_call([](std::size_t calls, std::size_t refusals) {
    support::context_with_wheel c;
    tally books;
    std::size_t early = 0;
    for (int i = 1; i <= 100; ++i) {
      const auto deadline = c.wheel.now() + i * 1ms;
      c.wheel.async_wait(deadline, [&, life = counted<>(books), deadline](error_code ec) mutable {
        life(ec);
        early += c.wheel.now() < deadline;
      });
    }
    {
      std::optional<virtual_time> time;
      const auto run_ready = [&c, large = std::array<char, 64>{}] {
        c.context.restart();
        c.context.poll();
        return large.size();
      };
      bool refused;
      {
        const heap_limit limit(calls, refusals);
        bad_allocs(1, [&] {
          time.emplace(c.wheel, run_ready);
          time->advance(1s);
        });
        refused = limit.was_reached();
      }
      if (!time) time.emplace(c.wheel, run_ready);
      time->advance(1s);
      BOOST_TEST(books.called == 100U);
      BOOST_TEST(early == 0U);
      BOOST_TEST(books.living() == 0U);
      time.reset();
      support::run_to_end(c.context);
      return refused;
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
