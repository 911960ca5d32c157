// timeout_policy: what is counted of operations that have one, what they report, and how that
// reads.
#include <algorithm>
#include <asio_wheel.hpp>
#include <asio_wheel/fmt.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::manual_operation;
using support::operation_on_wheel;
using support::result;

namespace {

struct operation_in_virtual_time : support::wheel_in_virtual_time {
  manual_operation operation{context.get_executor()};
  support::result result;
};

bool counts(const timeout_policy& policy, std::uint64_t started, std::uint64_t met,
            std::uint64_t expired, std::uint64_t abandoned = 0)
{
  const timeout_policy_stats s = policy.stats();
  return s.started == started && s.met == met && s.expired == expired && s.abandoned == abandoned;
}

std::size_t occurrences(std::string_view text, std::string_view part)
{
  std::size_t n = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(policy)

BOOST_AUTO_TEST_CASE(has_a_name_a_limit_and_an_error)
{
  timeout_policy p("redis header", 5s, asio::error::no_recovery);
  BOOST_TEST(p.name() == "redis header");
  BOOST_TEST((p.limit() == 5s));
  BOOST_TEST((p.error() == asio::error::no_recovery));
  p.set(std::chrono::hours::max());
  BOOST_TEST((p.limit() == timeout_policy::duration::max()));
  BOOST_TEST((timeout_policy("", 1s).error() == asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(counts_the_share_that_was_used_by_those_that_were_met)
{
  operation_in_virtual_time c;
  timeout_policy p("p", 1s);
  const std::pair<std::chrono::milliseconds, double> cases[] = {
    {0ms, 1 / 128.}, {100ms, 1 / 8.},   {499ms, 1 / 2.},   {500ms, 1 / 2.},
    {700ms, 3 / 4.}, {900ms, 15 / 16.}, {950ms, 31 / 32.}, {999ms, 1}};
  for (const auto& [taken, bound] : cases) {
    const auto before = p.stats().share_used.buckets;
    c.operation.async_run(timeout_after(p, c.result.recorder()));
    c.time.advance(taken);
    c.operation.complete({}, 3);
    c.time.advance(1ms);
    const auto after = p.stats().share_used.buckets;
    for (std::size_t i = 0; i < share_histogram::size; ++i)
      BOOST_TEST(after[i] - before[i] == (share_histogram::bounds[i] == bound ? 1U : 0U));
  }
  BOOST_TEST(counts(p, 8, 8, 0));
  const share_histogram h = p.stats().share_used;
  BOOST_TEST(h.count() == 8U);
  BOOST_TEST(std::abs(h.sum - 4.648) < 0.001);
  BOOST_TEST(h.percentile(0) == 1 / 128.);
  BOOST_TEST(h.percentile(50) == 1 / 2.);
  BOOST_TEST(h.percentile(100) == 1.);
  BOOST_TEST(share_histogram().percentile(50) == 0.);
}

BOOST_AUTO_TEST_CASE(is_used_up_by_no_limit_and_by_none_left)
{
  operation_in_virtual_time c;
  timeout_policy p("p", std::chrono::hours::max());
  c.operation.async_run(timeout_after(p, c.result.recorder()));
  c.time.advance(24h);
  c.operation.complete({}, 3);
  c.time.advance(1ms);
  BOOST_TEST(p.stats().share_used.buckets.front() == 1U);
  p.set(-1s);
  c.operation.obeys = false;
  c.operation.async_run(timeout_after(p, c.result.recorder()));
  c.operation.complete({}, 3);
  c.time.advance(1ms);
  BOOST_TEST(p.stats().share_used.buckets.back() == 1U);
}

BOOST_AUTO_TEST_CASE(reports_its_error_of_what_it_cut_short)
{
  operation_in_virtual_time c;
  timeout_policy p("p", 1s, asio::error::no_recovery);
  c.operation.async_run(timeout_after(p, c.result.recorder()));
  c.time.advance(999ms);
  BOOST_TEST(c.result.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.result.failed(asio::error::no_recovery));
  BOOST_TEST(counts(p, 1, 0, 1));
}

BOOST_AUTO_TEST_CASE(tells_two_nested_deadlines_apart)
{
  for (const bool outer_first : {false, true}) {
    operation_in_virtual_time c;
    timeout_policy outer("outer", outer_first ? 1s : 2s, asio::error::host_not_found);
    timeout_policy inner("inner", outer_first ? 2s : 1s, asio::error::no_recovery);
    c.operation.async_run(timeout_after(inner, timeout_after(outer, c.result.recorder())));
    c.time.advance(1s);
    BOOST_TEST((outer_first ? c.result.failed(asio::error::host_not_found)
                            : c.result.failed(asio::error::no_recovery)));
    BOOST_TEST(outer.stats().expired == (outer_first ? 1U : 0U));
    BOOST_TEST(inner.stats().expired == (outer_first ? 0U : 1U));
  }
}

BOOST_AUTO_TEST_CASE(counts_a_cancellation_that_looks_like_any_other)
{
  operation_in_virtual_time c;
  timeout_policy p("p", 1s);
  c.operation.async_run(cancel_after(p, c.result.recorder()));
  c.time.advance(1s);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  BOOST_TEST(counts(p, 1, 0, 1));
}

BOOST_AUTO_TEST_CASE(counts_a_late_success_as_expired_and_an_outer_cancellation_as_met)
{
  operation_in_virtual_time c;
  timeout_policy p("p", 1s);
  c.operation.obeys = false;
  c.operation.async_run(timeout_after(p, c.result.recorder()));
  c.time.advance(2s);
  c.operation.complete({}, 4);
  c.time.advance(1ms);
  BOOST_TEST(c.result.succeeded(4));
  BOOST_TEST(counts(p, 1, 0, 1));
  c.operation.obeys = true;
  asio::cancellation_signal signal;
  result aborted;
  c.operation.async_run(
    timeout_after(p, asio::bind_cancellation_slot(signal.slot(), aborted.recorder())));
  signal.emit(cancellation_type::terminal);
  c.time.advance(1ms);
  BOOST_TEST(aborted.failed(asio::error::operation_aborted));
  BOOST_TEST(counts(p, 2, 1, 1));
}

BOOST_AUTO_TEST_CASE(counts_those_that_were_abandoned)
{
  operation_in_virtual_time c;
  timeout_policy p("p", 1s, asio::error::no_recovery);
  c.operation.obeys = false;
  c.operation.async_run(abandon_after(p, c.result.recorder()));
  c.time.advance(1s);
  BOOST_TEST(c.result.failed(asio::error::no_recovery));
  BOOST_TEST(counts(p, 1, 0, 1, 1));
  c.operation.complete({}, 4);
  c.time.advance(1ms);
  BOOST_TEST(c.result.calls == 1);
  BOOST_TEST(counts(p, 1, 0, 1, 1));
}

BOOST_AUTO_TEST_CASE(counts_what_is_abandoned_before_its_deadline_as_started_only)
{
  operation_in_virtual_time c;
  timeout_policy p("p", 1s);
  c.operation.obeys = false;
  c.operation.async_run(abandon_after(p, c.result.recorder()));
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  c.time.advance(1ms);
  BOOST_TEST(c.result.failed(asio::error::operation_aborted));
  BOOST_TEST(counts(p, 1, 0, 0));
  c.operation.complete({}, 4);
  c.time.advance(1ms);
  BOOST_TEST(counts(p, 1, 0, 0));
}

BOOST_AUTO_TEST_CASE(counts_what_is_abandoned_by_a_refused_deadline_as_started_only)
{
  operation_on_wheel c(support::with_limit(1));
  timeout_policy p("p", 1h);
  c.wheel.async_wait(1ms, [](error_code) {});
  c.operation.obeys = false;
  c.operation.async_run(abandon_after(p, c.result.recorder()));
  c.context.run_for(5ms);
  BOOST_TEST(c.result.failed(wheel_errc::too_many_pending));
  BOOST_TEST(counts(p, 1, 0, 0));
  c.operation.drop();
}

BOOST_AUTO_TEST_CASE(counts_refused_and_destroyed_operations_as_started_only)
{
  operation_on_wheel c(support::with_limit(1));
  timeout_policy p("p", 1h);
  c.operation.async_run(timeout_after(p, c.result.recorder()));
  manual_operation second(c.context.get_executor());
  result refused;
  second.async_run(timeout_after(p, refused.recorder()));
  c.operation.drop();
  support::run_to_end(c.context);
  BOOST_TEST(refused.failed(wheel_errc::too_many_pending));
  BOOST_TEST(counts(p, 2, 0, 0));
}

BOOST_AUTO_TEST_CASE(set_holds_for_operations_that_start_later)
{
  operation_in_virtual_time c;
  timeout_policy p("p", 2s);
  manual_operation second(c.context.get_executor());
  result late;
  c.operation.async_run(timeout_after(p, late.recorder()));
  p.set(1s);
  second.async_run(timeout_after(p, c.result.recorder()));
  c.time.advance(1s);
  BOOST_TEST(c.result.failed(asio::error::timed_out));
  BOOST_TEST(late.pending());
  c.time.advance(1s);
  BOOST_TEST(late.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(goes_wherever_a_delay_goes)
{
  timeout_policy p("p", 1ms);
  const auto partial = cancellation_type::partial;
  const auto terminal = cancellation_type::terminal;
  const auto ends = [&](auto token, cancellation_type type) {
    operation_on_wheel c;
    wheel_timer timer(c.wheel);
    c.operation.async_run(token(c.wheel, timer, c.result.recorder()));
    support::run_to_end(c.context);
    return c.result.calls == 1 && c.operation.seen == std::vector{type};
  };
  using w = wheel_timer_service;
  BOOST_TEST(ends([&](w&, auto&, auto h) { return cancel_after(p)(h); }, terminal));
  BOOST_TEST(ends([&](w&, auto&, auto h) { return timeout_after(p, partial)(h); }, partial));
  BOOST_TEST(ends([&](w&, auto&, auto h) { return abandon_after(p, partial, h); }, partial));
  BOOST_TEST(ends([&](w& wheel, auto&, auto h) { return timeout_after(wheel, p, h); }, terminal));
  BOOST_TEST(ends([&](w&, auto& t, auto h) { return timeout_after(t, p, partial, h); }, partial));
  BOOST_TEST(counts(p, 5, 0, 5));
}

BOOST_AUTO_TEST_CASE(goes_with_coroutines_and_their_exceptions)
{
  operation_on_wheel c;
  timeout_policy p("p", 1ms, asio::error::no_recovery);
  const auto forever = []() -> asio::awaitable<void> {
    asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
    co_await timer.async_wait(asio::use_awaitable);
  };
  error_code thrown;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto [ec, n] =
      co_await c.operation.async_run(timeout_after(p, asio::as_tuple(asio::use_awaitable)));
    BOOST_TEST((ec == asio::error::no_recovery));
    try {
      co_await asio::co_spawn(c.context, forever(), timeout_after(p, asio::use_awaitable));
    } catch (const system_error& e) {
      thrown = e.code();
    }
  });
  BOOST_TEST((thrown == asio::error::no_recovery));
  BOOST_TEST(counts(p, 2, 0, 2));
}

BOOST_AUTO_TEST_CASE(leaves_an_erased_handler_its_executor)
{
  operation_on_wheel c;
  const auto strand = asio::make_strand(c.context);
  timeout_policy p("p", 1ms);
  int there = 0;
  const auto handler = [&](error_code, std::size_t) { there += strand.running_in_this_thread(); };
  using erased = asio::any_completion_handler<void(error_code, std::size_t)>;
  c.operation.async_run(timeout_after(p, erased(asio::bind_executor(strand, handler))));
  support::run_to_end(c.context);
  manual_operation on_strand(strand);
  on_strand.async_run(timeout_after(p, erased(handler)));
  support::run_to_end(c.context);
  BOOST_TEST(there == 2);
}

BOOST_AUTO_TEST_CASE(counts_what_ends_after_the_wheel_has_gone)
{
  asio::io_context other;
  manual_operation operation(other.get_executor());
  timeout_policy p("p", 1h);
  result r;
  std::optional<support::context_with_wheel> c(std::in_place);
  operation.async_run(timeout_after(c->wheel, p, r.recorder()));
  c.reset();
  operation.complete({}, 3);
  support::run_to_end(other);
  BOOST_TEST(r.succeeded(3));
  BOOST_TEST(counts(p, 1, 1, 0));
}

BOOST_AUTO_TEST_CASE(reads_as_one_series_per_name)
{
  operation_in_virtual_time c;
  timeout_policy header("redis \"header\"", 5s);
  timeout_policy body("body\\", 1s);
  c.operation.async_run(timeout_after(header, c.result.recorder()));
  c.operation.complete({}, 1);
  c.time.advance(1ms);
  const timeout_policy* const all[] = {&header, &body};
  const std::string text = prometheus(all, R"(zone="b")");
  for (const auto* line :
       {"# HELP asio_wheel_timeout_started_total Operations started.\n",
        "# TYPE asio_wheel_timeout_used_ratio histogram\n",
        "asio_wheel_timeout_limit_seconds{zone=\"b\",policy=\"redis \\\"header\\\"\"} 5\n",
        "asio_wheel_timeout_met_total{zone=\"b\",policy=\"redis \\\"header\\\"\"} 1\n",
        "asio_wheel_timeout_met_total{zone=\"b\",policy=\"body\\\\\"} 0\n",
        "asio_wheel_timeout_used_ratio_bucket{zone=\"b\",policy=\"body\\\\\",le=\"0.9375\"} 0\n",
        "asio_wheel_timeout_used_ratio_bucket{zone=\"b\",policy=\"body\\\\\",le=\"+Inf\"} 0\n"})
    BOOST_TEST(occurrences(text, line) == 1U, line);
  BOOST_TEST(occurrences(text, "# HELP") == 6U);
  BOOST_TEST(prometheus(body).starts_with("# HELP asio_wheel_timeout_limit_seconds"));
}

BOOST_AUTO_TEST_CASE(several_wheels_read_as_one_text)
{
  wheel_stats busy;
  busy.started = 7;
  const labelled_stats both[] = {{busy, R"(wheel="a")"}, {wheel_stats(), R"(wheel="b")"}};
  const std::string text = prometheus(both);
  BOOST_TEST(occurrences(text, "# HELP asio_wheel_started_total") == 1U);
  BOOST_TEST(occurrences(text,
                         "asio_wheel_started_total{wheel=\"a\"} 7\n"
                         "asio_wheel_started_total{wheel=\"b\"} 0\n") == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
