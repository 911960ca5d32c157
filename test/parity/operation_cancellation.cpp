// Parity of per-operation cancellation: a slot ends its own wait, and no other.
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::cancellation_type;
using boost::system::error_code;
using support::every_timer;
using support::outcome;

BOOST_AUTO_TEST_SUITE(operation_cancellation)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_type_aborts_the_wait, Timer, every_timer)
{
  const std::array types{cancellation_type::terminal, cancellation_type::partial,
                         cancellation_type::total, cancellation_type::all};
  for (const auto type : types) {
    asio::io_context context;
    Timer timer(context, 1h);
    asio::cancellation_signal signal;
    outcome wait;
    timer.async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
    signal.emit(type);
    BOOST_TEST(wait.pending());
    support::run_to_end(context);
    BOOST_TEST(wait.aborted());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(type_none_does_nothing, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 2ms);
  asio::cancellation_signal signal;
  outcome wait;
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  signal.emit(cancellation_type::none);
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(spares_the_other_waits_of_the_timer, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 3ms);
  std::array<asio::cancellation_signal, 3> signals;
  std::array<outcome, 3> waits;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    timer.async_wait(asio::bind_cancellation_slot(signals[i].slot(), waits[i].recorder()));
  }
  signals[1].emit(cancellation_type::terminal);
  support::run_to_end(context);
  BOOST_TEST(waits[0].succeeded());
  BOOST_TEST(waits[1].aborted());
  BOOST_TEST(waits[2].succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(takes_the_wait_out_of_the_timers_count, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  asio::cancellation_signal signal;
  std::array<outcome, 2> waits;
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), waits[0].recorder()));
  timer.async_wait(waits[1].recorder());
  signal.emit(cancellation_type::total);
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(waits[0].aborted());
  BOOST_TEST(waits[1].aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(after_cancel_a_signal_changes_nothing, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  asio::cancellation_signal signal;
  outcome wait;
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  BOOST_TEST(timer.cancel() == 1U);
  signal.emit(cancellation_type::terminal);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(after_completion_a_signal_changes_nothing, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  asio::cancellation_signal signal;
  outcome wait;
  outcome next;
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  support::run_to_end(context);
  timer.async_wait(next.recorder());
  signal.emit(cancellation_type::terminal);
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST(next.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slot_serves_one_wait_after_another, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1ms);
  asio::cancellation_signal signal;
  outcome first;
  outcome second;
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), first.recorder()));
  support::run_to_end(context);
  timer.expires_after(1h);
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), second.recorder()));
  signal.emit(cancellation_type::partial);
  support::run_to_end(context);
  BOOST_TEST(first.succeeded());
  BOOST_TEST(second.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(follows_the_wait_when_the_timer_moves, Timer, every_timer)
{
  asio::io_context context;
  asio::cancellation_signal signal;
  outcome wait;
  Timer from(context, 1h);
  from.async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  // Asio's signal still points to the timer that started the wait, so that timer must stay alive.
  Timer to(std::move(from));
  BOOST_TEST(to.cancel_one() == 1U);
  signal.emit(cancellation_type::terminal);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(reaches_a_future, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context, 1h);
  asio::cancellation_signal signal;
  auto done = timer.async_wait(asio::bind_cancellation_slot(signal.slot(), asio::use_future));
  signal.emit(cancellation_type::total);
  support::run_to_end(context);
  BOOST_CHECK_THROW(done.get(), boost::system::system_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(reaches_a_coroutine_through_its_spawner, Timer, every_timer)
{
  asio::io_context context;
  asio::cancellation_signal signal;
  error_code ec;
  asio::co_spawn(
    context,
    [&]() -> asio::awaitable<void> {
      Timer timer(context, 1h);
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    },
    asio::bind_cancellation_slot(signal.slot(), asio::detached));
  context.poll();
  signal.emit(cancellation_type::terminal);
  support::run_to_end(context);
  BOOST_TEST(ec == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_SUITE_END()
