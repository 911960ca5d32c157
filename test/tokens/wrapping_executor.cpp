// Handlers whose executor wraps the one that they are offered, as those of stdexec's senders do.
#include <asio_wheel.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <utility>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;

namespace {

/// Counts what another executor executes.
template <class Inner>
struct counting_executor {
  Inner inner;
  int* executed;

  template <class Function>
  void execute(Function&& f) const
  {
    ++*executed;
    inner.execute(std::forward<Function>(f));
  }

  template <class Property>
    requires(asio::can_query_v<Inner, Property>)
  decltype(auto) query(const Property& p) const noexcept { return asio::query(inner, p); }
  template <class Property>
    requires(asio::can_require_v<Inner, Property>)
  auto require(const Property& p) const noexcept { return wrap(asio::require(inner, p)); }
  template <class Property>
    requires(asio::can_prefer_v<Inner, Property>)
  auto prefer(const Property& p) const noexcept { return wrap(asio::prefer(inner, p)); }

  friend bool operator==(const counting_executor& a, const counting_executor& b) noexcept
  {
    return a.inner == b.inner && a.executed == b.executed;
  }
  friend bool operator!=(const counting_executor& a, const counting_executor& b) noexcept
  {
    return !(a == b);
  }

private:
  template <class Other>
  counting_executor<Other> wrap(Other other) const noexcept
  {
    return {std::move(other), executed};
  }
};

struct counting_handler {
  int* executed;
  support::outcome* result;

  void operator()(error_code ec) const { result->recorder()(ec); }
};

/// Runs a context, and says how often something was executed through the handler's executor.
struct story : context_with_wheel {
  int executed = 0;
  support::outcome result;

  counting_handler handler() { return {&executed, &result}; }
};

}  // namespace

template <class Executor>
struct boost::asio::associated_executor<counting_handler, Executor> {
  using type = counting_executor<Executor>;
  static type get(const counting_handler& h, const Executor& offered = Executor()) noexcept
  {
    return {offered, h.executed};
  }
};

BOOST_AUTO_TEST_SUITE(wrapping_executor)

BOOST_AUTO_TEST_CASE(is_offered_the_contexts)
{
  story s;
  s.wheel.async_wait(1ms, s.handler());
  support::run_to_end(s.context);
  BOOST_TEST(s.result.succeeded());
  BOOST_TEST(s.executed == 1);
}

BOOST_AUTO_TEST_CASE(is_offered_the_timers)
{
  story s;
  const auto strand = asio::make_strand(s.context);
  bool on_strand = false;
  wheel_timer timer(strand, 1ms);
  timer.async_wait(s.handler());
  timer.async_wait([&](error_code) { on_strand = strand.running_in_this_thread(); });
  support::run_to_end(s.context);
  BOOST_TEST(s.result.succeeded());
  BOOST_TEST(s.executed == 1);
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE(is_offered_the_one_of_an_operation_that_a_deadline_ends)
{
  story s;
  asio::steady_timer timer(s.context, 1h);
  timer.async_wait(timeout_after(1ms, s.handler()));
  support::run_to_end(s.context);
  BOOST_TEST(s.result.error == asio::error::timed_out);
  BOOST_TEST(s.executed >= 1);
}

BOOST_AUTO_TEST_CASE(is_offered_the_wheels_by_an_operation_without_one)
{
  story s;
  asio::steady_timer timer(s.context, 1h);
  const auto operation = [&timer](auto handler) { timer.async_wait(std::move(handler)); };
  auto token = timeout_after(s.wheel, 1ms, s.handler());
  asio::async_initiate<decltype(token), void(error_code)>(operation, token);
  support::run_to_end(s.context);
  BOOST_TEST(s.result.error == asio::error::timed_out);
  BOOST_TEST(s.executed >= 1);
}

BOOST_AUTO_TEST_CASE(is_not_run_inline_when_a_wait_is_refused)
{
  story s;
  context_with_wheel full(support::with_limit(1));
  full.wheel.async_wait(1h, [](error_code) {});
  full.wheel.async_wait(1h, s.handler());
  BOOST_TEST(s.result.pending());
  full.context.poll();
  BOOST_TEST((s.result.error == wheel_errc::too_many_pending));
}

BOOST_AUTO_TEST_SUITE_END()
