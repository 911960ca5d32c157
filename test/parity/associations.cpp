// Parity of associations: whose executor runs a handler, whose memory holds it, and never inline.
#include "support/ledger.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::booking_allocator;
using support::every_timer;
using support::ledger;
using support::outcome;

BOOST_AUTO_TEST_SUITE(associated_executor)

BOOST_AUTO_TEST_CASE_TEMPLATE(defaults_to_the_timers_own, Timer, every_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  Timer timer(strand, 1ms);
  bool on_strand = false;
  timer.async_wait([&](error_code) { on_strand = strand.running_in_this_thread(); });
  support::run_to_end(context);
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_a_strand, Timer, every_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  Timer timer(context, 1ms);
  bool expired_there = false;
  bool aborted_there = false;
  timer.async_wait(asio::bind_executor(
    strand, [&](error_code) { expired_there = strand.running_in_this_thread(); }));
  support::run_to_end(context);
  timer.expires_after(1h);
  timer.async_wait(asio::bind_executor(
    strand, [&](error_code) { aborted_there = strand.running_in_this_thread(); }));
  timer.cancel();
  support::run_to_end(context);
  BOOST_TEST(expired_there);
  BOOST_TEST(aborted_there);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_a_strand_of_an_erased_executor, Timer, every_timer)
{
  asio::io_context context;
  asio::io_context other;
  int there = 0;
  for (asio::io_context* each : {&context, &other}) {
    const auto strand = asio::make_strand(asio::any_io_executor(each->get_executor()));
    const auto handler = [&, strand](error_code ec) {
      there += !ec && strand.running_in_this_thread();
    };
    Timer timer(context, 1ms);
    timer.async_wait(asio::bind_executor(strand, handler));
    support::rebound<Timer, asio::strand<asio::any_io_executor>> of_strand(strand, 1ms);
    of_strand.async_wait(handler);
    support::run_to_end(context);
    support::run_to_end(other);
  }
  BOOST_TEST(there == 4);
}

// One of a user's own, whose kind that tracks work is another type.
template <class Inner = asio::io_context::executor_type>
struct typed_executor {
  Inner inner;

  template <class Function>
  void execute(Function f) const
  {
    asio::post(inner, std::move(f));
  }
  asio::execution_context& query(asio::execution::context_t) const noexcept
  {
    return inner.context();
  }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
  {
    return asio::execution::blocking.never;
  }
  typed_executor require(asio::execution::blocking_t::never_t) const { return *this; }
  auto require(asio::execution::outstanding_work_t::tracked_t tracked) const
  {
    const auto required = asio::require(inner, tracked);
    return typed_executor<std::remove_const_t<decltype(required)>>{required};
  }
  bool operator==(const typed_executor&) const noexcept = default;
};

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_a_strand_of_a_typed_executor, Timer, every_timer)
{
  asio::io_context context;
  asio::io_context other;
  int there = 0;
  for (asio::io_context* each : {&context, &other}) {
    const auto strand = asio::make_strand(typed_executor<>{each->get_executor()});
    Timer timer(context, 1ms);
    timer.async_wait(asio::bind_executor(
      strand, [&, strand](error_code ec) { there += !ec && strand.running_in_this_thread(); }));
    other.restart();
    BOOST_TEST(other.poll() == 0U);
    BOOST_TEST(other.stopped() == (each == &context), "the work is tracked where the handler runs");
    support::run_to_end(context);
    support::run_to_end(other);
  }
  BOOST_TEST(there == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_a_pool, Timer, every_timer)
{
  asio::io_context context;
  asio::thread_pool pool(1);
  Timer timer(context, 1ms);
  std::promise<bool> on_pool;
  timer.async_wait(asio::bind_executor(pool.get_executor(), [&](error_code) {
    on_pool.set_value(pool.get_executor().running_in_this_thread());
  }));
  support::run_to_end(context);
  BOOST_TEST(on_pool.get_future().get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_another_context_which_it_keeps_busy, Timer, every_timer)
{
  asio::io_context timers_context;
  asio::io_context handlers_context;
  Timer timer(timers_context, 1ms);
  outcome wait;
  timer.async_wait(asio::bind_executor(handlers_context.get_executor(), wait.recorder()));
  BOOST_TEST(handlers_context.poll() == 0U);
  BOOST_TEST(!handlers_context.stopped());
  support::run_to_end(timers_context);
  BOOST_TEST(wait.pending());
  support::run_to_end(handlers_context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_the_system_executor, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  std::promise<error_code> done;
  timer.async_wait(
    asio::bind_executor(asio::system_executor(), [&](error_code ec) { done.set_value(ec); }));
  support::run_to_end(context);
  BOOST_TEST(!done.get_future().get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_of_a_pool_completes_on_the_pool, Timer, every_timer)
{
  asio::thread_pool pool(2);
  Timer timer(pool, 1ms);
  std::promise<bool> on_pool;
  timer.async_wait(
    [&](error_code) { on_pool.set_value(pool.get_executor().running_in_this_thread()); });
  BOOST_TEST(on_pool.get_future().get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(strand_handlers_of_many_threads_do_not_overlap, Timer, every_timer)
{
  asio::thread_pool pool(2);
  const auto strand = asio::make_strand(pool.get_executor());
  std::vector<Timer> timers;
  int inside = 0;
  int overlaps = 0;
  int calls = 0;
  for (int i = 0; i < 64; ++i) timers.emplace_back(strand, (i % 4) * 1ms);
  for (auto& timer : timers) {
    timer.async_wait([&](error_code) {
      if (++inside != 1) ++overlaps;
      std::this_thread::yield();
      --inside;
      ++calls;
    });
  }
  pool.join();
  BOOST_TEST(calls == 64);
  BOOST_TEST(overlaps == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(associated_allocator)

BOOST_AUTO_TEST_CASE_TEMPLATE(holds_the_wait_and_is_free_before_the_handler, Timer, every_timer)
{
  asio::io_context context;
  ledger books;
  std::optional<std::size_t> held_in_handler;
  support::on_io_context<Timer> timer(context, 1ms);
  timer.async_wait(asio::bind_allocator(booking_allocator<void>(books),
                                        [&](error_code) { held_in_handler = books.outstanding; }));
  BOOST_TEST(books.outstanding == 1U);
  support::run_to_end(context);
  BOOST_TEST(held_in_handler.value() == 0U);
  BOOST_TEST(books.taken == 1U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(serves_an_erased_executor_too, Timer, every_timer)
{
  asio::io_context context;
  ledger books;
  outcome wait;
  Timer timer(context, 1ms);
  timer.async_wait(asio::bind_allocator(booking_allocator<void>(books), wait.recorder()));
  BOOST_TEST(books.outstanding > 0U);
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(gets_its_memory_back_after_a_cancel, Timer, every_timer)
{
  asio::io_context context;
  ledger books;
  outcome wait;
  Timer timer(context, 1h);
  timer.async_wait(asio::bind_allocator(booking_allocator<void>(books), wait.recorder()));
  timer.cancel();
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(gets_its_memory_back_with_the_context, Timer, every_timer)
{
  ledger books;
  outcome wait;
  {
    asio::io_context context;
    auto timer = std::make_shared<Timer>(context, 1h);
    timer->async_wait(
      asio::bind_allocator(booking_allocator<void>(books),
                           [timer, recorder = wait.recorder()](error_code ec) { recorder(ec); }));
    timer.reset();
    context.poll();
    BOOST_TEST(books.outstanding > 0U);
  }
  BOOST_TEST(wait.pending());
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(never_inline)

BOOST_AUTO_TEST_CASE_TEMPLATE(starting_a_past_wait_calls_nothing, Timer, every_timer)
{
  asio::io_context context;
  outcome wait;
  outcome on_system;
  asio::post(context, [&] {  // Inside the loop, where a dispatch would run at once.
    Timer timer(context, -1s);
    timer.async_wait(wait.recorder());
    timer.async_wait(asio::bind_executor(asio::system_executor(), on_system.recorder()));
    BOOST_TEST(wait.pending());
    BOOST_TEST(on_system.pending());
  });
  support::run_to_end(context);
  BOOST_TEST(wait.calls == 1);
  BOOST_TEST(on_system.calls == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_way_to_cancel_calls_the_handler, Timer, every_timer)
{
  asio::io_context context;
  outcome wait;
  int tried = 0;
  asio::cancellation_signal signal;
  // Each way to cancel, inside the loop, where a dispatch would run at once.
  const auto try_out = [&](auto cancel) {
    wait = {};
    asio::post(context, [&, cancel] {
      auto timer = std::make_unique<Timer>(context, 1h);
      timer->async_wait(asio::bind_cancellation_slot(
        signal.slot(), asio::bind_executor(asio::system_executor(), wait.recorder())));
      cancel(timer);
      BOOST_TEST(wait.pending());
      ++tried;
    });
    support::run_to_end(context);
    BOOST_TEST(wait.aborted());
  };
  try_out([](auto& timer) { timer->cancel(); });
  try_out([](auto& timer) { timer->cancel_one(); });
  try_out([](auto& timer) { timer->expires_after(1s); });
  try_out([](auto& timer) { timer->expires_at(timer->expiry()); });
  try_out([&](auto&) { signal.emit(asio::cancellation_type::terminal); });
  try_out([](auto& timer) { timer.reset(); });
  try_out([&](auto& timer) { *timer = Timer(context, 1h); });
  BOOST_TEST(tried == 7);
}

BOOST_AUTO_TEST_SUITE_END()
