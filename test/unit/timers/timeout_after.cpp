// timeout_after and timeout_at: when an abort becomes timed_out, and when it does not.
#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::manual_operation;
using support::operation_on_wheel;
using support::result;

BOOST_AUTO_TEST_SUITE(timing_out_after)

BOOST_AUTO_TEST_CASE(timed_out_is_reported_if_the_deadline_was_the_cause)
{
  operation_on_wheel c;
  c.operation.async_run(timeout_after(2ms, c.result.recorder()));
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  BOOST_TEST((c.operation.seen == std::vector{cancellation_type::terminal}));
}

BOOST_AUTO_TEST_CASE(timeout_after_has_the_overloads_of_cancel_after)
{
  context_with_wheel c;
  manual_operation o(c.context.get_executor());
  const auto times_out = [&](auto token, cancellation_type type) {
    result r;
    o.seen.clear();
    o.async_run(token(r.recorder()));
    support::run_to_end(c.context);
    return r.failed(asio::error::timed_out) && o.seen == std::vector{type};
  };
  const auto soon = c.wheel.now() + 1ms;
  const auto partial = cancellation_type::partial;
  const auto terminal = cancellation_type::terminal;
  auto& w = c.wheel;
  BOOST_TEST(times_out(timeout_after(1ms), terminal));
  BOOST_TEST(times_out(timeout_after(1ms, partial), partial));
  BOOST_TEST(times_out(timeout_after(w, 1ms), terminal));
  BOOST_TEST(times_out(timeout_after(w, 1ms, partial), partial));
  BOOST_TEST(times_out(timeout_at(soon), terminal));
  BOOST_TEST(times_out(timeout_at(soon, partial), partial));
  BOOST_TEST(times_out(timeout_at(w, soon), terminal));
  BOOST_TEST(times_out(timeout_at(w, soon, partial), partial));
  const auto with = [&](auto adapter, auto... args) {
    return [=](auto handler) { return adapter(args..., handler); };
  };
  BOOST_TEST(times_out(with(timeout_after, 1ms), terminal));
  BOOST_TEST(times_out(with(timeout_after, 1ms, partial), partial));
  BOOST_TEST(times_out([&](auto h) { return timeout_after(w, 1ms, h); }, terminal));
  BOOST_TEST(times_out([&](auto h) { return timeout_after(w, 1ms, partial, h); }, partial));
  BOOST_TEST(times_out(with(timeout_at, soon), terminal));
  BOOST_TEST(times_out(with(timeout_at, soon, partial), partial));
  BOOST_TEST(times_out([&](auto h) { return timeout_at(w, soon, h); }, terminal));
  BOOST_TEST(times_out([&](auto h) { return timeout_at(w, soon, partial, h); }, partial));
}

BOOST_AUTO_TEST_CASE(timed_out_is_not_reported_for_an_abort_before_the_deadline)
{
  operation_on_wheel c;
  c.operation.async_run(timeout_after(1h, c.result.recorder()));
  c.operation.complete(asio::error::operation_aborted);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(timed_out_is_not_reported_for_a_cancellation_from_outside)
{
  operation_on_wheel c;
  asio::cancellation_signal signal;
  c.operation.async_run(
    timeout_after(1h, asio::bind_cancellation_slot(signal.slot(), c.result.recorder())));
  signal.emit(cancellation_type::partial);
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(timed_out_is_reported_if_the_operation_ignored_a_cancellation)
{
  for (const bool deadline_first : {false, true}) {
    operation_on_wheel c;
    c.operation.obeys = false;
    asio::cancellation_signal signal;
    c.operation.async_run(
      timeout_after(1ms, asio::bind_cancellation_slot(signal.slot(), c.result.recorder())));
    if (deadline_first) c.await_cancellations(1);
    signal.emit(cancellation_type::terminal);
    c.await_cancellations(2);
    c.operation.complete(asio::error::operation_aborted);
    support::run_to_end(c.context);
    BOOST_TEST(c.result.failed(asio::error::timed_out));
  }
}

BOOST_AUTO_TEST_CASE(other_errors_and_successes_are_left_alone)
{
  for (const error_code ec : {error_code{}, error_code(asio::error::eof)}) {
    operation_on_wheel c;
    c.operation.obeys = false;
    c.operation.async_run(timeout_after(1ms, c.result.recorder()));
    c.await_cancellations(1);
    c.operation.complete(ec, 4);
    support::run_to_end(c.context);
    BOOST_TEST(c.result.calls == 1);
    BOOST_TEST(c.result.error == ec);
    BOOST_TEST(c.result.size == 4U);
  }
}

BOOST_AUTO_TEST_CASE(timed_out_takes_the_place_of_the_first_error_only)
{
  using two_errors = void(error_code, error_code);
  context_with_wheel c;
  asio::steady_timer timer(c.context, 1h);
  const auto async_wait = [&timer](auto token) {
    return asio::async_compose<decltype(token), two_errors>(
      [&timer, started = false](auto& self, error_code ec = {}) mutable {
        if (std::exchange(started, true)) return self.complete(ec, ec);
        timer.async_wait(std::move(self));
      },
      token, timer);
  };
  error_code first, second;
  async_wait(timeout_after(2ms, [&](error_code a, error_code b) {
    first = a;
    second = b;
  }));
  support::run_to_end(c.context);
  BOOST_TEST(first == asio::error::timed_out);
  BOOST_TEST(second == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(timed_out_is_not_reported_for_cancel_all)
{
  operation_on_wheel c;
  c.operation.async_run(timeout_after(1h, c.result.recorder()));
  c.wheel.cancel_all();
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(a_refused_deadline_has_an_error_of_its_own)
{
  operation_on_wheel c(support::with_limit(1));
  c.wheel.async_wait(1h, [](error_code) {});
  c.operation.async_run(timeout_after(1h, c.result.recorder()));
  support::run_until(c.context, [&] { return !c.result.pending(); });
  BOOST_TEST(c.result.failed(wheel_errc::too_many_pending));
}

BOOST_AUTO_TEST_CASE(the_inner_and_the_outer_timeout_are_told_apart)
{
  for (const bool inner_first : {false, true}) {
    const auto soon = 1ms;
    const auto later = 1h;
    operation_on_wheel c;
    c.operation.async_run(timeout_after(
      inner_first ? duration{soon} : duration{later},
      cancel_after(inner_first ? duration{later} : duration{soon}, c.result.recorder())));
    support::run_to_end(c.context);
    if (inner_first)
      BOOST_TEST(c.result.failed(asio::error::timed_out));
    else
      BOOST_TEST(c.result.failed(asio::error::operation_aborted));
    BOOST_TEST(c.wheel.pending() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_timeout_outside_of_a_cancellation_is_reported)
{
  operation_on_wheel c;
  c.operation.async_run(cancel_after(1h, timeout_after(1ms, c.result.recorder())));
  support::run_to_end(c.context);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(a_timed_out_accept_leaves_the_acceptor_usable)
{
  using asio::ip::tcp;
  context_with_wheel c;
  tcp::acceptor acceptor(c.context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  error_code first;
  acceptor.async_accept(timeout_after(2ms, [&](error_code ec, tcp::socket) { first = ec; }));
  support::run_to_end(c.context);
  BOOST_TEST(first == asio::error::timed_out);

  tcp::socket client(c.context);
  error_code connected;
  error_code accepted = asio::error::would_block;
  client.async_connect(acceptor.local_endpoint(),
                       timeout_after(20s, [&](error_code ec) { connected = ec; }));
  acceptor.async_accept(timeout_after(20s, [&](error_code ec, tcp::socket) { accepted = ec; }));
  support::run_to_end(c.context);
  BOOST_TEST(!connected);
  BOOST_TEST(!accepted);
}

BOOST_AUTO_TEST_CASE(timed_out_is_reported_on_a_strand_of_an_erased_executor)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(asio::any_io_executor(c.context.get_executor()));
  asio::steady_timer operation(c.context, 1h);
  bool reported_there = false;
  operation.async_wait(timeout_after(1ms, asio::bind_executor(strand, [&](error_code ec) {
                                       reported_there = ec == asio::error::timed_out &&
                                                        strand.running_in_this_thread();
                                     })));
  support::run_to_end(c.context);
  BOOST_TEST(reported_there);
}

BOOST_AUTO_TEST_CASE(timeout_after_needs_a_signature_that_begins_with_an_error)
{
  static_assert(detail::reports_error<void(error_code)>);
  static_assert(detail::reports_error<void(const error_code&, std::size_t)>);
  static_assert(detail::reports_error<void(error_code, int) noexcept>);
  static_assert(!detail::reports_error<void()>);
  static_assert(!detail::reports_error<void(int, error_code)>);
  static_assert(detail::reports_error<void(std::exception_ptr)>);
  static_assert(detail::reports_error<void(std::exception_ptr, int)>);
  static_assert(!detail::reports_error<void(std::array<std::size_t, 2>, std::exception_ptr)>);
}

BOOST_AUTO_TEST_SUITE_END()
