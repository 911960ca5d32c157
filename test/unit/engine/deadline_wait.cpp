// A deadline inside an operation: filed, cancelled, refused, and who owns the state in the end.
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/virtual_time.hpp>
#include <asio_wheel/wheel_timer_service.hpp>
#include <detail/engine/core.hpp>

#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;
using support::context_with_wheel;

namespace {

/// Makes the steps public. Its owner must end it.
class operation : public deadline_wait {
public:
  operation(context_with_wheel& c, duration delay,
            deadline_report report = deadline_report::timed_out)
    : operation(deadline_filing(core_of(c.wheel), delay), report)
  {}
  ~operation() { static_cast<void>(take_core()); }

  using deadline_wait::departure;

  [[nodiscard]] bool start() { return deadline_wait::start(when_); }
  [[nodiscard]] bool end() { return leave_and_tell(operation_end::none); }
  [[nodiscard]] departure end_before_handler() { return deadline_wait::leave(operation_end::none); }
  [[nodiscard]] bool leave() { return leave_and_tell(operation_end::completed); }
  using deadline_wait::begin;
  using deadline_wait::firing;
  using deadline_wait::replacement;
  using deadline_wait::requeue;
  using deadline_wait::tie;

  int taken_up = 0;  ///< how often the wheel has handed it over, with a hold

private:
  operation(const deadline_filing& filing, deadline_report report)
    : deadline_wait([](wait_op& op, shard&, wait_request,
                       time_point) { ++static_cast<operation&>(op).taken_up; },
                    filing, asio::cancellation_type::terminal, report),
      when_(filing.when)
  {}

  tick when_;
};

struct open_link : wait_link {
  [[nodiscard]] deadline_wait* hold(asio::cancellation_type type)
  {
    return deadline_wait::hold(*this, type);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(deadline_of_operation)

BOOST_AUTO_TEST_CASE(is_taken_out_at_once)
{
  context_with_wheel c;
  operation op(c, 1h);
  BOOST_TEST(op.start());
  BOOST_TEST(c.wheel.pending() == 1U);
  BOOST_TEST(op.end());
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.wheel.stats().met == 1U);
  BOOST_TEST(c.wheel.stats().cancelled == 0U);
  support::run_to_end(c.context);
  BOOST_TEST(op.taken_up == 0);
}

BOOST_AUTO_TEST_CASE(is_not_filed_behind_the_end_of_its_operation)
{
  context_with_wheel c;
  operation op(c, 1h);
  BOOST_TEST(!op.end());
  BOOST_TEST(!op.leave());
  BOOST_TEST(!op.start());
  BOOST_TEST(c.wheel.stats().started == 0U);
}

BOOST_AUTO_TEST_CASE(that_is_firing_leaves_the_end_to_it)
{
  context_with_wheel c;
  operation op(c, 0ms);
  BOOST_TEST(op.start());
  support::run_to_end(c.context);
  BOOST_TEST(op.taken_up == 1);
  BOOST_TEST(!op.end());
  BOOST_TEST(!op.leave());
  BOOST_TEST((op.begin({}) == operation::firing::off));
  BOOST_TEST(op.release());
  BOOST_TEST((op.replacement() == wait_outcome::expired));
}

BOOST_AUTO_TEST_CASE(that_has_fired_leaves_the_end_to_the_operation)
{
  context_with_wheel c;
  operation op(c, 0ms);
  BOOST_TEST(op.start());
  support::run_to_end(c.context);
  BOOST_TEST((op.begin({}) == operation::firing::now));
  BOOST_TEST(!op.release());
  BOOST_TEST(op.end());
  BOOST_TEST((op.replacement() == wait_outcome::timed_out));
}

BOOST_AUTO_TEST_CASE(that_is_due_is_taken_out_all_the_same)
{
  context_with_wheel c;
  operation op(c, 0ms);
  BOOST_TEST(op.start());
  bool first = true;
  for (int i = 0; i < 2; ++i) {
    c.wheel.async_wait(wheel_timer_service::time_point::min(), [&](error_code) {
      if (std::exchange(first, false)) BOOST_TEST(op.taken_up == 0);
    });
  }
  BOOST_TEST(op.end());
  support::run_to_end(c.context);
  BOOST_TEST(op.taken_up == 0);
  BOOST_TEST(c.wheel.stats().met == 1U);
}

BOOST_AUTO_TEST_CASE(reports_nothing_when_it_is_to_abort)
{
  context_with_wheel c;
  operation op(c, 0ms, deadline_report::aborted);
  BOOST_TEST(op.start());
  support::run_to_end(c.context);
  BOOST_TEST((op.begin({}) == operation::firing::now));
  BOOST_TEST(!op.release());
  BOOST_TEST(op.end());
  BOOST_TEST((op.replacement() == wait_outcome::expired));
}

BOOST_AUTO_TEST_CASE(reports_that_it_was_refused)
{
  context_with_wheel c(support::with_limit(1));
  operation first(c, 1h);
  operation second(c, 1h, deadline_report::aborted);
  BOOST_TEST(first.start());
  BOOST_TEST(second.start());
  BOOST_TEST(first.end());
  support::run_to_end(c.context);
  BOOST_TEST(second.taken_up == 1);
  BOOST_TEST((second.begin({}) == operation::firing::now));
  BOOST_TEST(!second.release());
  BOOST_TEST(second.end());
  BOOST_TEST((second.replacement() == wait_outcome::rejected));
}

BOOST_AUTO_TEST_CASE(that_was_refused_is_taken_out_all_the_same)
{
  context_with_wheel c(support::with_limit(1));
  operation first(c, 1h);
  operation second(c, 1h);
  BOOST_TEST(first.start());
  BOOST_TEST(second.start());
  BOOST_TEST(second.end());
  BOOST_TEST(first.end());
  support::run_to_end(c.context);
  BOOST_TEST(second.taken_up == 0);
}

BOOST_AUTO_TEST_CASE(is_its_operations_when_the_context_goes)
{
  std::optional<operation> pending;
  std::optional<operation> late;
  {
    context_with_wheel c;
    pending.emplace(c, 1h);
    late.emplace(c, 1h);
    BOOST_TEST(pending->start());
    std::optional<context_with_wheel> other(std::in_place);
    operation foreign(*other, 1h);
    BOOST_TEST(foreign.start());
    other.reset();
    BOOST_TEST(foreign.end());
    BOOST_TEST(!late->leave());
    BOOST_TEST(!late->start());
  }
  BOOST_TEST(pending->end());
  BOOST_TEST(pending->taken_up == 0);
}

BOOST_AUTO_TEST_CASE(is_taken_out_while_a_cancellation_is_passed_on)
{
  context_with_wheel c;
  operation op(c, 1h);
  open_link l;
  op.tie(l);
  BOOST_TEST(op.start());
  BOOST_TEST(l.hold(asio::cancellation_type::none) == nullptr);
  BOOST_TEST(l.hold(asio::cancellation_type::total) == &op);
  BOOST_TEST(!op.end());
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(!op.leave());
  BOOST_TEST(l.hold(asio::cancellation_type::total) == nullptr);
  BOOST_TEST(op.release());
  BOOST_TEST((op.replacement() == wait_outcome::expired));
}

BOOST_AUTO_TEST_CASE(goes_once_behind_what_is_queued_after_a_cancellation_from_outside)
{
  context_with_wheel c;
  operation op(c, 0ms);
  open_link l;
  op.tie(l);
  BOOST_TEST(op.start());
  BOOST_TEST(l.hold(asio::cancellation_type::total) == &op);
  BOOST_TEST(!op.release());
  support::run_to_end(c.context);
  BOOST_TEST(op.taken_up == 1);
  BOOST_TEST((op.begin({}) == operation::firing::later));
  BOOST_TEST(!op.requeue());
  BOOST_TEST(c.wheel.pending() == 1U);
  BOOST_TEST(op.taken_up == 1);
  support::run_to_end(c.context);
  BOOST_TEST(op.taken_up == 2);
  BOOST_TEST((op.begin({}) == operation::firing::now));
  BOOST_TEST(!op.release());
  BOOST_TEST(op.end());
  BOOST_TEST((op.replacement() == wait_outcome::timed_out));
}

BOOST_AUTO_TEST_CASE(counts_many_emissions_at_once)
{
  context_with_wheel c;
  operation op(c, 1h);
  open_link l;
  op.tie(l);
  BOOST_TEST(op.start());
  constexpr int emissions = 1000;
  for (int i = 0; i < emissions; ++i) BOOST_TEST(l.hold(asio::cancellation_type::total) == &op);
  BOOST_TEST(!op.end());
  BOOST_TEST(!op.leave());
  for (int i = 1; i < emissions; ++i) BOOST_TEST(!op.release());
  BOOST_TEST(op.release());
}

BOOST_AUTO_TEST_CASE(may_outlive_its_link_and_the_other_way_round)
{
  context_with_wheel c;
  std::optional<open_link> l;
  {
    operation op(c, 1h);
    {
      open_link first;
      op.tie(first);
    }
    op.tie(l.emplace());
    BOOST_TEST(op.start());
    BOOST_TEST(op.end());
  }
  BOOST_TEST(l->hold(asio::cancellation_type::total) == nullptr);
}

BOOST_AUTO_TEST_CASE(costs_no_pass_if_the_next_follows_in_its_handler)
{
  context_with_wheel c;
  asio::post(c.context, [&] {
    operation first(c, 1h);
    operation second(c, 1h);
    BOOST_TEST(first.start());
    BOOST_TEST(c.context.poll() == 0U);  // the timer is set
    {
      // In the order of a completion, with the handler in between.
      operation third(c, 1h);
      BOOST_TEST(third.start());
      BOOST_TEST(first.end());
      const operation::departure left = third.end_before_handler();
      BOOST_TEST(left.is_last);
      BOOST_TEST(second.start());
      if (left.to_tell_of) tell_driver(*left.to_tell_of);
    }
    BOOST_TEST(c.context.poll() == 0U);
    BOOST_TEST(second.end());
    BOOST_TEST(c.context.poll() > 0U);
  });
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.stats().wakeups == 0U);
}

// What doubt is left of virtual time would hold up deadlines on strands until real time catches up.
BOOST_AUTO_TEST_CASE(is_in_doubt_for_some_ticks_after_a_wait_was_sent_but_not_behind_virtual_time)
{
  context_with_wheel c;
  const wheel_core& core = core_of(c.wheel);
  BOOST_TEST(!core.has_sent_lately());
  {
    virtual_time time(c.wheel);
    c.wheel.async_wait(1h, asio::bind_executor(asio::make_strand(c.context), [](error_code) {}));
    const auto tick = c.wheel.options().tick;
    time.advance(1h + tick);
    BOOST_TEST(core.has_sent_lately());
    c.wheel.async_wait(wheel_core::ticks_in_doubt * tick, [](error_code) {});
    time.advance((wheel_core::ticks_in_doubt + 2) * tick);
    BOOST_TEST(!core.has_sent_lately());
    c.wheel.async_wait(1h, asio::bind_executor(asio::make_strand(c.context), [](error_code) {}));
    time.advance(1h + tick);
    c.wheel.async_wait(tick, [](error_code) {});
    time.advance(2 * tick);
    BOOST_TEST(core.has_sent_lately());
  }
  BOOST_TEST(!core.has_sent_lately());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(signal_with_room)

BOOST_AUTO_TEST_CASE(holds_small_and_large_handlers)
{
  struct large {
    void operator()(asio::cancellation_type_t) { ++*calls; }
    int* calls;
    std::shared_ptr<int> kept;
    std::array<char, 200> ballast{};
  };
  int calls = 0;
  const auto kept = std::make_shared<int>(0);
  {
    embedded_signal signal;
    const embedded_slot slot(signal);
    BOOST_TEST(!slot.has_handler());
    signal.emit(asio::cancellation_type::total);
    slot.emplace<large>(&calls, kept);
    signal.emit(asio::cancellation_type::total);
    BOOST_TEST(calls == 1);
    slot.assign([&calls, kept](asio::cancellation_type_t) { calls += 10; });
    signal.emit(asio::cancellation_type::total);
    BOOST_TEST(calls == 11);
    BOOST_TEST(kept.use_count() == 2);
    slot.clear();
    BOOST_TEST(kept.use_count() == 1);
    signal.emit(asio::cancellation_type::total);
    slot.emplace<large>(&calls, kept);
    BOOST_TEST(slot.has_handler());
  }
  BOOST_TEST(calls == 11);
  BOOST_TEST(kept.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(may_be_stored_as_asios)
{
  int before = 0;
  int behind = 0;
  const auto kept = std::make_shared<int>(0);
  {
    embedded_signal signal;
    const embedded_slot slot(signal);
    slot.assign([&before, kept](asio::cancellation_type_t) { ++before; });
    asio::cancellation_slot stored = slot;
    // It is the same slot: what was in it is still there.
    BOOST_TEST(stored.has_handler());
    BOOST_TEST((stored == static_cast<asio::cancellation_slot>(slot)));
    signal.emit(asio::cancellation_type::total);
    BOOST_TEST(before == 1);
    slot.assign([&behind, kept](asio::cancellation_type_t) { ++behind; });
    BOOST_TEST(kept.use_count() == 2);
    signal.emit(asio::cancellation_type::total);
    BOOST_TEST(behind == 1);
    // Either clears what the other has put there.
    stored.clear();
    BOOST_TEST(!slot.has_handler());
    signal.emit(asio::cancellation_type::total);
    stored.assign([&behind](asio::cancellation_type_t) { ++behind; });
    slot.clear();
    BOOST_TEST(!stored.has_handler());
    slot.assign([kept](asio::cancellation_type_t) {});
    BOOST_TEST(stored.has_handler());
  }
  BOOST_TEST(before == 1);
  BOOST_TEST(behind == 1);
  BOOST_TEST(kept.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(is_empty_when_a_handler_cannot_be_made)
{
  struct throwing {
    throwing() { throw std::runtime_error("no"); }
    void operator()(asio::cancellation_type_t) {}
    char ballast[200];
  };
  embedded_signal signal;
  BOOST_CHECK_THROW(signal.emplace<throwing>(), std::runtime_error);
  BOOST_TEST(!signal.has_handler());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(wheel_that_a_thread_remembers)

BOOST_AUTO_TEST_CASE(is_the_one_of_its_context_until_any_wheel_goes)
{
  context_with_wheel c;
  {
    context_with_wheel other;
    remember_wheel(c.context, c.wheel);
    BOOST_TEST(recent_wheel(c.context) == &c.wheel);
    BOOST_TEST(recent_wheel(other.context) == nullptr);
  }
  BOOST_TEST(recent_wheel(c.context) == nullptr);
  BOOST_TEST(&use_wheel(c.context) == &c.wheel);
  BOOST_TEST(recent_wheel(c.context) == &c.wheel);
}

BOOST_AUTO_TEST_SUITE_END()
