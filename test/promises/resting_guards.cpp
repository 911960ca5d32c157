// Promises 4, 7 and 8 where a guard has nothing to guard: its wait rests in the wheel, which nobody
// may notice.
#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/due.hpp"
#include "support/manual_operation.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

#include <asio_wheel/timeout_after.hpp>
#include <asio_wheel/wheel_timer.hpp>
#include <asio_wheel/wheel_watchdog.hpp>

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::context_with_wheel;
using support::manual_operation;
using support::outcome;

namespace {

struct ignored {
  void operator()(const error_code&, std::size_t) const {}
};

/// Has passed when it is asked, and has moved when it is asked again, as by a touch in between.
struct moves_when_asked final : detail::moving_deadline {
  [[nodiscard]] detail::time_point deadline() const noexcept override
  {
    if (!is_due) return wheel_timer::clock_type::now() + 2ms;
    has_moved = !has_moved;
    return wheel_timer::clock_type::now() + (has_moved ? -1ms : 1h);
  }

  bool is_due = false;
  mutable bool has_moved = false;
};

/// Guards with a timeout of half an hour that have guarded one operation, while something else is
/// pending.
struct resting_guards : context_with_wheel {
  explicit resting_guards(std::size_t n = 3, wheel_options options = {})
    : context_with_wheel(options)
  {
    other.expires_after(1h);
    other.async_wait(ended.recorder());
    for (std::size_t i = 0; i < n; ++i) {
      dogs.push_back(std::make_unique<wheel_watchdog>(wheel, 30min));
      guard_one(*dogs.back());
    }
    BOOST_TEST(wheel.pending() == 1U);
  }

  void guard_one(wheel_watchdog& dog)
  {
    start_one(dog.guard([](error_code, std::size_t) {}));
    context.restart();
    context.poll();
  }

  /// Starts an operation that completes with the next function that the context runs.
  template <class Token>
  void start_one(Token token)
  {
    manual_operation operation(context.get_executor());
    operation.async_run(std::move(token));
    operation.complete({});
  }

  /// Returns true if run() has nothing to wait for.
  bool runs_out_of_work()
  {
    const auto start = steady_clock::now();
    context.restart();
    context.run_for(20s);
    return context.stopped() && steady_clock::now() - start < 10s;
  }

  outcome ended;
  wheel_timer other{wheel};
  std::vector<std::unique_ptr<wheel_watchdog>> dogs;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(resting_guards_)

BOOST_AUTO_TEST_CASE(are_not_pending_and_found_by_the_next_operation)
{
  resting_guards c(1);
  const auto before = c.wheel.stats();
  for (int i = 0; i < 100; ++i) c.guard_one(*c.dogs.front());
  const auto after = c.wheel.stats();
  BOOST_TEST(after.pending == 1U);
  BOOST_TEST(after.started - before.started == after.met - before.met);
  BOOST_TEST(after.expired == before.expired);
  BOOST_TEST(after.cancelled == before.cancelled);
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_when_those_of_several_shards_are_filed_again_at_once)
{
  resting_guards c(0, {.shards = 4});
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      c.wheel.async_wait(1ms, [](error_code) {});  // in the shard of this thread
      c.dogs.push_back(std::make_unique<wheel_watchdog>(c.wheel, 10ms));
      c.start_one(c.dogs.back()->guard([](error_code, std::size_t) {}));
      c.dogs.back()->set_timeout(1h);
    }).join();
  }
  c.other.cancel();
  std::this_thread::sleep_for(20ms);
  BOOST_TEST(c.runs_out_of_work());
}

BOOST_AUTO_TEST_CASE(end_an_operation_that_comes_later)
{
  resting_guards c;
  c.dogs[0]->set_timeout(10ms);
  c.dogs[0]->touch();
  support::result read;
  manual_operation operation(c.context.get_executor());
  operation.async_run(c.dogs[0]->guard(read.recorder()));
  c.context.restart();
  while (read.pending() && c.context.run_one_for(20s) != 0) continue;
  BOOST_TEST(read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_when_the_last_wait_is_cancelled)
{
  resting_guards c;
  BOOST_TEST(c.other.cancel() == 1U);
  BOOST_TEST(c.runs_out_of_work());
  BOOST_TEST(c.ended.aborted());
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_when_another_thread_cancels_the_last_wait)
{
  resting_guards c;
  std::thread([&] { c.other.cancel(); }).join();
  BOOST_TEST(c.runs_out_of_work());
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_when_the_last_wait_expires)
{
  resting_guards c;
  c.other.expires_after(10ms);
  outcome last;
  c.other.async_wait(last.recorder());
  BOOST_TEST(c.runs_out_of_work());
  BOOST_TEST(last.succeeded());
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_when_the_last_operation_meets_its_deadline)
{
  resting_guards c;
  c.start_one(timeout_after(3h, [](error_code, std::size_t) {}));
  c.other.cancel();
  BOOST_TEST(c.runs_out_of_work());
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_when_the_last_deadline_fires)
{
  resting_guards c;
  support::result read;
  manual_operation operation(c.context.get_executor());
  operation.async_run(timeout_after(c.wheel, 10ms, read.recorder()));
  c.other.cancel();
  BOOST_TEST(c.runs_out_of_work());
  BOOST_TEST(read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_when_the_last_guard_comes_to_rest)
{
  resting_guards c;
  c.start_one(c.dogs.front()->guard([](error_code, std::size_t) {}));
  c.other.cancel();
  BOOST_TEST(c.runs_out_of_work());
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_after_cancel_all_which_does_not_count_them)
{
  resting_guards c(200);
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  BOOST_TEST(c.runs_out_of_work());
  BOOST_TEST(c.ended.aborted());
  c.guard_one(*c.dogs.front());
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.runs_out_of_work());
}

BOOST_AUTO_TEST_CASE(keep_nothing_running_after_an_exception_of_the_last_handler)
{
  resting_guards c;
  c.other.cancel();
  wheel_timer last(c.wheel, 10ms);
  last.async_wait([](error_code) { throw std::runtime_error("thrown by the handler"); });
  c.context.restart();
  BOOST_CHECK_THROW(c.context.run_for(20s), std::runtime_error);
  BOOST_TEST(c.runs_out_of_work());
}

BOOST_AUTO_TEST_CASE(are_not_seen_by_who_asks_what_is_pending)
{
  resting_guards c;
  c.dogs[1]->set_timeout(1min);
  c.guard_one(*c.dogs[1]);
  BOOST_TEST(c.wheel.pending_by_handler().rows.size() == 1U);
  c.guard_one(*c.dogs[1]);
  const auto next = c.wheel.next_expiry();
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST((*next > c.wheel.now() + 45min));
}

BOOST_AUTO_TEST_CASE(go_with_their_watchdogs_and_with_the_context)
{
  auto c = std::make_unique<resting_guards>(100);
  c->dogs.erase(c->dogs.begin(), c->dogs.begin() + 50);
  for (auto& dog : c->dogs) c->guard_one(*dog);
  BOOST_TEST(c->wheel.pending() == 1U);
  auto outliving = std::move(c->dogs.back());
  c->dogs.pop_back();
  BOOST_CHECK_NO_THROW(c.reset());
}

BOOST_AUTO_TEST_CASE(leave_room_for_others_under_a_limit)
{
  resting_guards c(1, support::with_limit(2));
  for (int i = 0; i < 10; ++i) c.guard_one(*c.dogs.front());
  outcome second;
  c.wheel.async_wait(1h, second.recorder());
  c.context.restart();
  c.context.poll();
  BOOST_TEST(second.pending());
  BOOST_TEST(c.wheel.pending() == 2U);
}

BOOST_FIXTURE_TEST_CASE(rest_or_end_if_a_touch_comes_as_their_time_does, resting_guards)
{
  moves_when_asked deadline;
  const detail::guard_ptr guard(new detail::operation_guard(detail::core_of(wheel), &deadline));
  start_one(detail::deadline_token<ignored, detail::guarded_by, detail::deadline_report::timed_out>{
    {}, {guard}, asio::cancellation_type::terminal});
  context.restart();
  context.poll();
  deadline.is_due = true;
  support::spin(wheel, 4ms);
  context.restart();
  context.poll();
  BOOST_TEST(wheel.pending() == 1U);
  guard->close();
}

BOOST_AUTO_TEST_SUITE_END()
