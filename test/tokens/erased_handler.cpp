// Deadlines over type-erased handlers and executors, as libraries have that compile their
// operations apart from their users.
#include <array>
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/tcp_ends.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::any_completion_executor;
using support::context_with_wheel;
using support::manual_operation;
using erased = asio::any_completion_handler<void(error_code, std::size_t)>;

namespace {

/// An operation on a strand, and where it was cancelled and completed.
struct on_strand : context_with_wheel {
  asio::strand<asio::io_context::executor_type> strand = asio::make_strand(context);
  manual_operation operation{strand};
  int cancelled_there = 0;
  int completed_there = 0;
  error_code error;

  on_strand()
  {
    operation.when_cancelled = [this] { cancelled_there += here(); };
  }

  [[nodiscard]] int here() const { return strand.running_in_this_thread() ? 1 : 0; }
  [[nodiscard]] auto recorder()
  {
    return [this](error_code ec, std::size_t) {
      completed_there += here();
      error = ec;
    };
  }

  void ends_with(error_code expected)
  {
    support::run_to_end(context);
    BOOST_TEST(error == expected);
    BOOST_TEST(cancelled_there == 1);
    BOOST_TEST(completed_there == 1);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(deadline_of_an_erased_handler)

BOOST_FIXTURE_TEST_CASE(cancels_on_the_operations_executor, on_strand)
{
  operation.async_run(cancel_after(1ms, erased(recorder())));
  ends_with(asio::error::operation_aborted);
}

BOOST_FIXTURE_TEST_CASE(times_out_on_the_operations_executor, on_strand)
{
  operation.async_run(timeout_after(1ms, erased(recorder())));
  ends_with(asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(of_a_given_wheel_cancels_on_the_operations_executor, on_strand)
{
  operation.async_run(timeout_after(wheel, 1ms, erased(recorder())));
  ends_with(asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(guarded_ends_on_the_operations_executor, on_strand)
{
  wheel_watchdog dog(context, 1ms);
  operation.async_run(dog.guard(erased(recorder())));
  ends_with(asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(is_cancelled_on_its_own_executor, on_strand)
{
  manual_operation elsewhere(context.get_executor());
  elsewhere.when_cancelled = [this] { cancelled_there += here(); };
  elsewhere.async_run(timeout_after(1ms, erased(asio::bind_executor(strand, recorder()))));
  ends_with(asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(is_cancelled_on_an_erased_executor, on_strand)
{
  manual_operation elsewhere(context.get_executor());
  elsewhere.when_cancelled = [this] { cancelled_there += here(); };
  elsewhere.async_run(
    timeout_after(1ms, asio::bind_executor(any_completion_executor(strand), recorder())));
  ends_with(asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(guarded_ends_on_an_erased_executor, on_strand)
{
  wheel_watchdog dog(context, 1ms);
  manual_operation elsewhere(context.get_executor());
  elsewhere.when_cancelled = [this] { cancelled_there += here(); };
  elsewhere.async_run(dog.guard(asio::bind_executor(any_completion_executor(strand), recorder())));
  ends_with(asio::error::timed_out);
}

BOOST_FIXTURE_TEST_CASE(keeps_a_result_that_came_first, on_strand)
{
  operation.async_run(timeout_after(1h, erased(recorder())));
  asio::post(strand, [this] { operation.complete({}); });
  support::run_to_end(context);
  BOOST_TEST(!error);
  BOOST_TEST(completed_there == 1);
  BOOST_TEST(wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(may_be_that_of_a_coroutine)
{
  using handler = asio::any_completion_handler<void(std::exception_ptr)>;
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  bool there = false;
  error_code error;
  const auto wait = [&]() -> asio::awaitable<void> {
    co_await c.wheel.async_wait(1h, asio::use_awaitable);
  };
  asio::co_spawn(strand, wait, timeout_after(1ms, handler([&](std::exception_ptr e) {
                                               there = strand.running_in_this_thread();
                                               try {
                                                 std::rethrow_exception(e);
                                               } catch (const system_error& thrown) {
                                                 error = thrown.code();
                                               }
                                             })));
  support::run_to_end(c.context);
  BOOST_TEST(error == asio::error::timed_out);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_CASE(without_any_executor_needs_a_wheel)
{
  const auto initiation = [](auto handler) { std::move(handler)(error_code(), std::size_t{}); };
  BOOST_CHECK_THROW(
    (asio::async_initiate<decltype(timeout_after(1h, erased())), void(error_code, std::size_t)>(
      initiation, *std::make_unique<decltype(timeout_after(1h, erased()))>(
                    timeout_after(1h, erased([](error_code, std::size_t) {}))))),
    std::logic_error);
}

BOOST_AUTO_TEST_CASE(leaves_the_result_when_the_wheel_is_gone)
{
  asio::io_context context;
  auto of_wheel = std::make_unique<context_with_wheel>();
  manual_operation operation(context.get_executor());
  support::result result;
  asio::cancellation_signal signal;
  operation.async_run(cancel_after(
    of_wheel->wheel, 1h,
    asio::bind_cancellation_slot(
      signal.slot(), erased(asio::bind_executor(context.get_executor(), result.recorder())))));
  of_wheel.reset();
  // The operation completes inside the emission, which holds its state.
  asio::post(context, [&] { signal.emit(asio::cancellation_type::terminal); });
  support::run_to_end(context);
  BOOST_TEST(result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tcp_stream_and_erased_handlers)

BOOST_AUTO_TEST_CASE(times_out_on_the_streams_strand)
{
  support::tcp_ends ends;
  tcp_stream stream(std::move(ends.local));
  std::array<char, 8> room;
  for (const auto delay : {1ms, -1ms}) {
    for (const bool bound : {false, true}) {
      support::result read;
      stream.expires_after(delay);
      if (bound)
        stream.async_read_some(
          asio::buffer(room),
          asio::bind_executor(any_completion_executor(asio::make_strand(ends.context)),
                              read.recorder()));
      else
        stream.async_read_some(asio::buffer(room), erased(read.recorder()));
      ends.context.restart();
      ends.context.poll();
      ends.time.advance(2ms);
      BOOST_TEST(read.failed(asio::error::timed_out));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(use_wheel_of_an_erased_executor)

BOOST_AUTO_TEST_CASE(looks_inside)
{
  context_with_wheel c;
  const auto io = c.context.get_executor();
  const asio::any_io_executor any = io;
  for (const any_completion_executor& ex :
       {any_completion_executor(io), any_completion_executor(any),
        any_completion_executor(asio::make_strand(io)),
        any_completion_executor(asio::make_strand(any)),
        any_completion_executor(asio::any_io_executor(asio::make_strand(io))),
        any_completion_executor(asio::require(io, asio::execution::blocking.never))})
    BOOST_TEST(&use_wheel(ex) == &c.wheel);
  asio::thread_pool pool(1);
  BOOST_TEST(&use_wheel(any_completion_executor(pool.get_executor())) == &use_wheel(pool));
}

BOOST_AUTO_TEST_CASE(is_enough_for_a_timer)
{
  asio::io_context context;
  const auto strand = asio::make_strand(context);
  basic_wheel_timer<any_completion_executor> timer(any_completion_executor(strand), 1ms);
  bool there = false;
  timer.async_wait([&](error_code) { there = strand.running_in_this_thread(); });
  support::run_to_end(context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_SUITE_END()
