// Parity of type-erased handlers and executors: their executor has one type and any value.
#include "support/ledger.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <optional>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::every_timer;
using support::outcome;
using erased = asio::any_completion_handler<void(error_code)>;

BOOST_AUTO_TEST_SUITE(erased_handler)

BOOST_AUTO_TEST_CASE_TEMPLATE(without_an_executor_runs_on_the_timers, Timer, every_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  int there = 0;
  const auto handler = [&](error_code) { there += strand.running_in_this_thread() ? 1 : 0; };
  Timer expires(strand, 1ms);
  Timer is_past(strand, -1ms);
  Timer is_cancelled(strand, 1h);
  support::rebound<Timer, asio::strand<asio::io_context::executor_type>> typed(strand, 1ms);
  expires.async_wait(erased(handler));
  is_past.async_wait(erased(handler));
  is_cancelled.async_wait(erased(handler));
  is_cancelled.cancel();
  typed.async_wait(erased(handler));
  support::run_to_end(context);
  BOOST_TEST(there == 4);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_strand_does_not_overlap, Timer, every_timer)
{
  asio::thread_pool pool(2);
  const auto strand = asio::make_strand(pool.get_executor());
  std::vector<Timer> timers;
  int inside = 0;
  int overlaps = 0;
  int calls = 0;
  for (int i = 0; i < 64; ++i) timers.emplace_back(strand, (i % 4) * 1ms);
  for (auto& timer : timers) {
    timer.async_wait(erased([&](error_code) {
      if (++inside != 1) ++overlaps;
      ++calls;
      --inside;
    }));
  }
  pool.join();
  BOOST_TEST(calls == 64);
  BOOST_TEST(overlaps == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(keeps_its_own_executor, Timer, every_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  Timer timer(asio::make_strand(context), 1ms);
  bool there = false;
  timer.async_wait(erased(
    asio::bind_executor(strand, [&](error_code) { there = strand.running_in_this_thread(); })));
  support::run_to_end(context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(keeps_an_executor_of_another_context, Timer, every_timer)
{
  asio::io_context context;
  asio::thread_pool pool(1);
  Timer timer(context, 1ms);
  std::promise<bool> on_pool;
  timer.async_wait(erased(asio::bind_executor(pool.get_executor(), [&](error_code) {
    on_pool.set_value(pool.get_executor().running_in_this_thread());
  })));
  support::run_to_end(context);
  BOOST_TEST(on_pool.get_future().get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(inside_of_other_associations_runs_on_the_timers, Timer, every_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  support::ledger books;
  std::optional<std::size_t> held;
  Timer timer(strand, 1ms);
  bool there = false;
  timer.async_wait(
    asio::bind_allocator(support::booking_allocator<void>(books), erased([&](error_code) {
                           there = strand.running_in_this_thread();
                           held = books.outstanding;
                         })));
  support::run_to_end(context);
  BOOST_TEST(there);
  BOOST_TEST(held.value() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(hears_its_slot, Timer, every_timer)
{
  asio::io_context context;
  asio::cancellation_signal signal;
  Timer timer(asio::make_strand(context), 1h);
  outcome wait;
  timer.async_wait(erased(asio::bind_cancellation_slot(signal.slot(), wait.recorder())));
  context.poll();
  signal.emit(asio::cancellation_type::terminal);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_end_a_deferred_wait, Timer, every_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  Timer timer(strand, 1ms);
  bool there = false;
  auto operation = timer.async_wait(asio::deferred);
  std::move(operation)(erased([&](error_code) { there = strand.running_in_this_thread(); }));
  support::run_to_end(context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(erased_executor)

BOOST_AUTO_TEST_CASE_TEMPLATE(is_where_the_handler_runs, Timer, every_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  Timer on_strand(context, 1ms);
  Timer on_context(context, 1ms);
  bool there = false;
  outcome wait;
  on_strand.async_wait(asio::bind_executor(asio::any_completion_executor(strand), [&](error_code) {
    there = strand.running_in_this_thread();
  }));
  on_context.async_wait(
    asio::bind_executor(asio::any_completion_executor(context.get_executor()), wait.recorder()));
  support::run_to_end(context);
  BOOST_TEST(there);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_be_inside_of_a_strand, Timer, every_timer)
{
  using strand_of_any = asio::strand<asio::any_io_executor>;
  asio::io_context context;
  const strand_of_any strand{asio::any_io_executor(context.get_executor())};
  support::rebound<Timer, strand_of_any> timer(strand, 1ms);
  bool there = false;
  timer.async_wait(erased([&](error_code) { there = strand.running_in_this_thread(); }));
  support::run_to_end(context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_SUITE_END()
