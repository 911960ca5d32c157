// Cancels behave the same, whether the shard puts them off or not.
#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <vector>

#include <detail/engine/posting.hpp>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;

namespace {

/// More cancels than a shard puts off at once.
constexpr std::size_t many = 100;

/// More waits than a batch: some are still due in the wheel when the first handler runs.
constexpr std::size_t several_batches = 3 * delivery::length;

struct started_waits : context_with_wheel {
  auto recorder(std::size_t i)
  {
    return [this, i](error_code ec) {
      BOOST_TEST((ec == asio::error::operation_aborted));
      ended.push_back(i);
    };
  }

  std::vector<std::size_t> ended;
};

struct started_timers : started_waits {
  started_timers()
  {
    for (std::size_t i = 0; i < many; ++i) {
      timers.emplace_back(wheel, 1h);
      timers.back().async_wait(recorder(i));
    }
  }

  std::deque<wheel_timer> timers;
};

/// Plain waits of the wheel, cancelled through their slots.
struct started_slots : started_waits {
  started_slots()
  {
    for (auto& signal : signals) start(signal, static_cast<std::size_t>(&signal - signals.data()));
  }

  void start(asio::cancellation_signal& signal, std::size_t i)
  {
    wheel.async_wait(1h, asio::bind_cancellation_slot(signal.slot(), recorder(i)));
  }

  void emit_all()
  {
    for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
  }

  std::vector<asio::cancellation_signal> signals{many};
};

/// Calls `f()` from the first handler of several batches with the same deadline.
template <class Function>
void when_others_are_due(context_with_wheel& c, Function f)
{
  std::size_t expired = 0;
  const auto deadline = c.wheel.now() + 1ms;
  for (std::size_t i = 0; i < several_batches; ++i) {
    c.wheel.async_wait(deadline, [&](error_code ec) {
      BOOST_TEST(!ec);
      if (expired++ == 0) f();
    });
  }
  support::run_to_end(c.context);
  BOOST_TEST(expired == several_batches);
}

std::vector<std::size_t> in_order()
{
  std::vector<std::size_t> all(many);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shard)

BOOST_AUTO_TEST_CASE(cancels_complete_in_their_order_however_many)
{
  started_timers t;
  for (auto& timer : t.timers) BOOST_TEST(timer.cancel() == 1U);
  BOOST_TEST(t.ended.empty());
  support::run_to_end(t.context);
  BOOST_TEST(t.ended == in_order());
}

BOOST_AUTO_TEST_CASE(a_cancel_that_cannot_be_put_off_comes_behind_those_that_were)
{
  started_timers t;
  for (std::size_t i = 0; i + 1 < many; ++i) t.timers[i].cancel();
  t.timers.back().cancel_one();
  support::run_to_end(t.context);
  BOOST_TEST(t.ended == in_order());
}

BOOST_AUTO_TEST_CASE(waits_complete_in_the_order_of_their_signals)
{
  started_slots s;
  s.emit_all();
  BOOST_TEST(s.ended.empty());
  support::run_to_end(s.context);
  BOOST_TEST(s.ended == in_order());
}

BOOST_AUTO_TEST_CASE(cancels_complete_in_their_order_whoever_cancels)
{
  started_waits c;
  std::deque<wheel_timer> timers;
  std::vector<asio::cancellation_signal> signals(many);
  for (std::size_t i = 0; i < many; ++i) {
    const auto with_slot = [&] {
      return asio::bind_cancellation_slot(signals[i].slot(), c.recorder(i));
    };
    timers.emplace_back(c.wheel, 1h);
    switch (i % 3) {
      case 0: timers.back().async_wait(c.recorder(i)); break;
      case 1: timers.back().async_wait(with_slot()); break;
      case 2: c.wheel.async_wait(1h, with_slot()); break;
    }
  }
  for (std::size_t i = 0; i < many; ++i) {
    if (i % 3 == 0)
      timers[i].cancel();
    else
      signals[i].emit(asio::cancellation_type::terminal);
  }
  support::run_to_end(c.context);
  BOOST_TEST(c.ended == in_order());
}

BOOST_AUTO_TEST_CASE(a_signal_cancels_its_wait_once)
{
  started_slots s;
  s.signals.front().emit(asio::cancellation_type::terminal);
  s.signals.front().emit(asio::cancellation_type::terminal);
  BOOST_TEST(s.wheel.pending() == many - 1);
  BOOST_TEST(s.wheel.stats().cancelled == 1U);
  s.emit_all();
  BOOST_TEST(s.wheel.stats().cancelled == many);
  support::run_to_end(s.context);
  BOOST_TEST(s.ended == in_order());
}

BOOST_AUTO_TEST_CASE(a_signal_may_serve_another_wait_right_after_its_emission)
{
  started_slots s;
  s.emit_all();
  for (std::size_t i = 0; i < many; ++i) s.start(s.signals[i], many + i);
  s.emit_all();
  support::run_to_end(s.context);
  BOOST_TEST(s.ended.size() == 2 * many);
  BOOST_TEST(std::ranges::is_sorted(s.ended));
}

BOOST_AUTO_TEST_CASE(signals_may_go_right_after_their_emission)
{
  started_slots s;
  s.emit_all();
  s.signals.clear();
  support::run_to_end(s.context);
  BOOST_TEST(s.ended == in_order());
}

BOOST_AUTO_TEST_CASE(timers_are_cancelled_while_other_waits_are_due)
{
  started_timers t;
  when_others_are_due(t, [&] {
    for (auto& timer : t.timers) timer.cancel();
  });
  BOOST_TEST(t.ended == in_order());
}

BOOST_AUTO_TEST_CASE(waits_are_cancelled_while_others_are_due)
{
  started_slots s;
  when_others_are_due(s, [&] { s.emit_all(); });
  BOOST_TEST(s.ended == in_order());
}

BOOST_AUTO_TEST_CASE(what_is_due_can_be_cancelled_by_its_signal)
{
  for (const auto ahead : {-1h, 0h, 1h}) {
    context_with_wheel c;
    virtual_time time(c.wheel);
    std::vector<asio::cancellation_signal> signals(several_batches);
    std::size_t ended = 0;
    const auto deadline = c.wheel.now() + ahead;
    for (auto& signal : signals) {
      c.wheel.async_wait(deadline, asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) {
                           BOOST_TEST((ec == asio::error::operation_aborted) == (ended != 0));
                           if (ended++ != 0) return;
                           for (auto& each : signals) each.emit(asio::cancellation_type::terminal);
                         }));
    }
    time.advance(2h);
    BOOST_TEST(ended == several_batches);
    BOOST_TEST(c.wheel.stats().cancelled == several_batches - 1);
  }
}

BOOST_AUTO_TEST_CASE(what_was_due_before_the_clock_went_back_can_be_cancelled)
{
  struct first_one {};
  context_with_wheel c;
  std::deque<wheel_timer> timers;
  std::vector<asio::cancellation_signal> signals(several_batches);
  std::size_t expired = 0;
  std::size_t aborted = 0;
  const auto handler = [&](error_code ec) {
    if (ec) {
      ++aborted;
    } else if (expired++ == 0) {
      throw first_one();
    }
  };
  try {
    virtual_time time(c.wheel);
    const auto deadline = c.wheel.now() + 1h;
    for (auto& signal : signals) {
      timers.emplace_back(c.wheel, deadline).async_wait(handler);
      c.wheel.async_wait(deadline, asio::bind_cancellation_slot(signal.slot(), handler));
    }
    time.advance(2h);
    BOOST_ERROR("no handler threw");
  } catch (const first_one&) {
  }
  for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
  std::size_t counted = 0;
  for (auto& timer : timers) counted += timer.cancel();
  BOOST_TEST(counted == several_batches - 1);
  support::run_to_end(c.context);
  BOOST_TEST(expired == 1U);
  BOOST_TEST(aborted == 2 * several_batches - 1);
  BOOST_TEST(c.wheel.stats().cancelled == aborted);
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_counts_no_more)
{
  started_timers t;
  t.timers.front().cancel();
  BOOST_TEST(t.wheel.pending() == many - 1);
  BOOST_TEST(t.wheel.stats().cancelled == 1U);
  BOOST_TEST(t.timers.front().cancel() == 0U);
  BOOST_TEST(t.timers.front().cancel_one() == 0U);
  BOOST_TEST(t.wheel.cancel_all() == many - 1);
  support::run_to_end(t.context);
  BOOST_TEST(t.ended.size() == many);
}

BOOST_AUTO_TEST_CASE(timers_may_go_right_after_their_cancel)
{
  started_timers t;
  for (auto& timer : t.timers) timer.cancel();
  t.timers.clear();
  support::run_to_end(t.context);
  BOOST_TEST(t.ended == in_order());
}

BOOST_AUTO_TEST_CASE(a_new_wait_on_the_timer_is_another_wait)
{
  context_with_wheel c;
  wheel_timer timer(c.wheel, 1h);
  outcome first, second;
  timer.async_wait(first.recorder());
  BOOST_TEST(timer.expires_after(1ms) == 1U);
  timer.async_wait(second.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(first.aborted());
  BOOST_TEST(second.succeeded());
}

BOOST_AUTO_TEST_CASE(emitting_to_a_cancelled_wait_changes_nothing)
{
  context_with_wheel c;
  asio::cancellation_signal signal;
  outcome wait;
  wheel_timer timer(c.wheel, 1h);
  timer.async_wait(asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  BOOST_TEST(timer.cancel() == 1U);
  signal.emit(asio::cancellation_type::terminal);
  BOOST_TEST(c.wheel.stats().cancelled == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(waits_of_a_context_that_goes_are_destroyed_cancelled_or_not)
{
  std::vector<std::size_t> ended;
  {
    started_timers t;
    for (std::size_t i = 0; i < 3; ++i) t.timers[i].cancel();
    t.timers.clear();
    ended = t.ended;
  }
  BOOST_TEST(ended.empty());
}

BOOST_AUTO_TEST_CASE(an_overdue_wait_is_cancelled_at_once)
{
  context_with_wheel c;
  outcome wait;
  wheel_timer timer(c.wheel, -1h);
  timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(a_slot_that_becomes_large_is_handed_down_ahead_of_its_first_wait)
{
  // It takes a wake-up of its own, if this process is not held up for the 25 ms that it may take.
  support::with_time_enough(300ms, [](std::chrono::milliseconds ahead) {
    context_with_wheel c(support::with_tick(100us));
    std::uint64_t wakeups = 0;
    const auto first = c.wheel.now() + ahead;
    c.wheel.async_wait(first, [&](error_code) { wakeups = c.wheel.stats().wakeups; });
    outcome ignored;
    for (int i = 0; i < 300; ++i) c.wheel.async_wait(first + 1ms, ignored.recorder());
    support::run_to_end(c.context);
    return wakeups > 1;
  });
}

BOOST_AUTO_TEST_SUITE_END()
