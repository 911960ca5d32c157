// Promise 5, never inline: no handler runs inside the function that started or cancelled it.
//
// Every case acts inside the loop, with handlers that any thread may run at once. If the wheel used
// dispatch(), it would call them inline.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

namespace {

auto anywhere(outcome& o)
{
  return asio::bind_executor(asio::system_executor(), o.recorder());
}

/// Runs `act` inside the loop, and requires that `wait` ends after it, not within.
template <class Act>
void check_not_inline(context_with_wheel& c, outcome& wait, Act act)
{
  bool acted = false;
  asio::post(c.context, [&] {
    act();
    BOOST_TEST(wait.pending());
    acted = true;
  });
  support::run_to_end(c.context);
  BOOST_TEST(acted);
  BOOST_TEST(wait.calls == 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(never_inline)

BOOST_AUTO_TEST_CASE(starting_a_wait_that_is_over)
{
  for (const auto delay : {wheel_timer_service::duration::min(), wheel_timer_service::duration{-1s},
                           wheel_timer_service::duration::zero()}) {
    context_with_wheel c;
    outcome wait;
    check_not_inline(c, wait, [&] { c.wheel.async_wait(delay, anywhere(wait)); });
    BOOST_TEST(wait.succeeded());
  }
}

BOOST_AUTO_TEST_CASE(starting_a_wait_on_a_timer_that_is_over)
{
  context_with_wheel c;
  wheel_timer timer(c.wheel);
  outcome wait;
  check_not_inline(c, wait, [&] { timer.async_wait(anywhere(wait)); });
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(starting_a_wait_that_is_refused)
{
  context_with_wheel c(support::with_limit(1));
  outcome first;
  outcome refused;
  check_not_inline(c, refused, [&] {
    c.wheel.async_wait(1ms, first.recorder());
    c.wheel.async_wait(1ms, anywhere(refused));
  });
  BOOST_TEST(refused.error == wheel_errc::too_many_pending);
}

BOOST_AUTO_TEST_CASE(cancelling_through_the_service)
{
  context_with_wheel c;
  outcome wait;
  c.wheel.async_wait(1h, anywhere(wait));
  check_not_inline(c, wait, [&] { BOOST_TEST(c.wheel.cancel_all() == 1U); });
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(cancelling_through_the_slot)
{
  context_with_wheel c;
  asio::cancellation_signal signal;
  outcome wait;
  c.wheel.async_wait(1h, asio::bind_cancellation_slot(signal.slot(), anywhere(wait)));
  check_not_inline(c, wait, [&] { signal.emit(asio::cancellation_type::terminal); });
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(cancelling_destroying_or_replacing_a_timer)
{
  const auto check = [](auto act) {
    context_with_wheel c;
    auto timer = std::make_unique<wheel_timer>(c.wheel);
    timer->expires_after(1h);
    outcome wait;
    timer->async_wait(anywhere(wait));
    check_not_inline(c, wait, [&] { act(timer); });
    BOOST_TEST(wait.aborted());
  };
  check([](auto& timer) { timer->cancel(); });
  check([](auto& timer) { timer->cancel_one(); });
  check([](auto& timer) { timer->expires_after(1s); });
  check([](auto& timer) { timer->expires_at(timer->expiry()); });
  check([](auto& timer) { timer.reset(); });
  check([](auto& timer) { *timer = wheel_timer(timer->get_executor()); });
}

BOOST_AUTO_TEST_CASE(cancelling_in_the_handler_of_a_neighbour)
{
  context_with_wheel c;
  std::vector<int> depth;
  int inside = 0;
  wheel_timer timer(c.wheel);
  timer.expires_after(1h);
  for (int i = 0; i < 3; ++i) {
    timer.async_wait(asio::bind_executor(asio::system_executor(), [&](error_code) {
      depth.push_back(++inside);
      timer.cancel_one();
      c.wheel.cancel_all();
      --inside;
    }));
  }
  timer.cancel_one();
  support::run_to_end(c.context);
  const std::vector<int> one_after_the_other{1, 1, 1};
  BOOST_TEST(depth == one_after_the_other, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
