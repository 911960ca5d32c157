// Parity of moving: pending waits travel with the timer, and the moved-from one starts afresh.
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using support::every_timer;
using support::outcome;

BOOST_AUTO_TEST_SUITE(moving)

BOOST_AUTO_TEST_CASE_TEMPLATE(construction_takes_expiry_and_waits_along, Timer, every_timer)
{
  asio::io_context context;
  Timer from(context, 1h);
  const auto deadline = from.expiry();
  outcome wait;
  from.async_wait(wait.recorder());

  Timer to(std::move(from));
  BOOST_TEST((to.expiry() == deadline));
  BOOST_TEST((to.get_executor() == context.get_executor()));
  BOOST_TEST(from.cancel() == 0U);
  BOOST_TEST(to.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(leaves_a_timer_as_if_new, Timer, every_timer)
{
  asio::io_context context;
  Timer from(context, 1h);
  Timer to(std::move(from));
  BOOST_TEST((from.expiry() == typename Timer::time_point{}));
  BOOST_TEST((from.get_executor() == context.get_executor()));

  outcome again;
  BOOST_TEST(from.expires_after(1ms) == 0U);
  from.async_wait(again.recorder());
  support::run_to_end(context);
  BOOST_TEST(again.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(does_not_disturb_a_wait_that_expires_later, Timer, every_timer)
{
  asio::io_context context;
  std::optional<Timer> from(std::in_place, context, 5ms);
  outcome wait;
  from->async_wait(wait.recorder());
  const Timer to(std::move(*from));
  from.reset();
  support::run_to_end(context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(assignment_aborts_the_targets_waits, Timer, every_timer)
{
  asio::io_context context;
  Timer from(context, 5ms);
  Timer to(context, 1h);
  const auto deadline = from.expiry();
  outcome kept;
  outcome dropped;
  from.async_wait(kept.recorder());
  to.async_wait(dropped.recorder());

  to = std::move(from);
  BOOST_TEST((to.expiry() == deadline));
  BOOST_TEST(dropped.pending());
  support::run_to_end(context);
  BOOST_TEST(dropped.aborted());
  BOOST_TEST(kept.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(assignment_brings_the_sources_context, Timer, every_timer)
{
  asio::io_context here;
  asio::io_context there;
  Timer to(here, 1h);
  outcome dropped;
  outcome kept;
  {
    Timer from(there, 1ms);
    to.async_wait(dropped.recorder());
    from.async_wait(kept.recorder());
    to = std::move(from);
  }
  BOOST_TEST((to.get_executor() == there.get_executor()));
  support::run_to_end(here);
  BOOST_TEST(dropped.aborted());
  BOOST_TEST(kept.pending());
  support::run_to_end(there);
  BOOST_TEST(kept.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(converts_to_a_wider_executor_only, Timer, every_timer)
{
  using on_io = support::on_io_context<Timer>;
  BOOST_TEST((std::is_constructible_v<Timer, on_io&&>));
  BOOST_TEST((std::is_assignable_v<Timer&, on_io&&>));
  BOOST_TEST((!std::is_constructible_v<on_io, Timer&&>));
  BOOST_TEST((!std::is_assignable_v<on_io&, Timer&&>));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(converting_construction_takes_waits_along, Timer, every_timer)
{
  asio::io_context context;
  support::on_io_context<Timer> from(context, 1h);
  const auto deadline = from.expiry();
  outcome wait;
  from.async_wait(wait.recorder());

  Timer to(std::move(from));
  BOOST_TEST((to.expiry() == deadline));
  BOOST_TEST((from.expiry() == typename Timer::time_point{}));
  BOOST_TEST((to.get_executor() == context.get_executor()));
  BOOST_TEST(from.cancel() == 0U);
  BOOST_TEST(to.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(converting_assignment_aborts_the_targets_waits, Timer, every_timer)
{
  asio::io_context context;
  support::on_io_context<Timer> from(context, 5ms);
  Timer to(context, 1h);
  outcome kept;
  outcome dropped;
  from.async_wait(kept.recorder());
  to.async_wait(dropped.recorder());

  to = std::move(from);
  support::run_to_end(context);
  BOOST_TEST(dropped.aborted());
  BOOST_TEST(kept.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(swaps_timers_with_their_waits, Timer, every_timer)
{
  asio::io_context context;
  Timer a(context, 1h);
  Timer b(context, 2h);
  outcome of_a;
  outcome of_b;
  a.async_wait(of_a.recorder());
  b.async_wait(of_b.recorder());

  std::swap(a, b);
  BOOST_TEST((b.expiry() < a.expiry()));
  BOOST_TEST(b.cancel() == 1U);
  support::run_until(context, [&] { return !of_a.pending(); });
  BOOST_TEST(of_a.aborted());
  BOOST_TEST(of_b.pending());
  BOOST_TEST(a.cancel() == 1U);
  support::run_to_end(context);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred_wait_can_be_replaced_by_another, Timer, every_timer)
{
  asio::io_context context;
  Timer first(context, 1h), second(context, 1h);
  auto wait = first.async_wait(asio::deferred);
  wait = second.async_wait(asio::deferred);
  outcome of_wait;
  std::move(wait)(of_wait.recorder());
  BOOST_TEST(first.cancel() == 0U);
  BOOST_TEST(second.cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(of_wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(lets_timers_live_in_a_growing_vector, Timer, every_timer)
{
  constexpr std::size_t many = 40;
  asio::io_context context;
  std::vector<outcome> waits(many);
  std::vector<Timer> timers;
  for (auto& wait : waits) {
    timers.emplace_back(context, 2ms).async_wait(wait.recorder());
  }
  support::run_to_end(context);
  for (const auto& wait : waits) BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(inside_a_handler_of_the_same_timer_is_fine, Timer, every_timer)
{
  asio::io_context context;
  auto timer = std::make_unique<Timer>(context, 1ms);
  std::optional<Timer> refuge;
  outcome second;
  timer->async_wait([&](boost::system::error_code ec) {
    BOOST_TEST(!ec);
    timer->expires_after(1h);
    timer->async_wait(second.recorder());
    refuge.emplace(std::move(*timer));
    timer.reset();
  });
  support::run_until(context, [&] { return refuge.has_value(); });
  BOOST_TEST(second.pending());
  BOOST_TEST(refuge->cancel() == 1U);
  support::run_to_end(context);
  BOOST_TEST(second.aborted());
}

BOOST_AUTO_TEST_SUITE_END()
