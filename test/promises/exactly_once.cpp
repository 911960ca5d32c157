// Promise 4, exactly once: one completion each, or a handler destroyed with the context.
#include <algorithm>
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "support/due.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::outcome;

namespace {

/// One wait that can be cancelled through its slot.
struct signalled_wait {
  asio::cancellation_signal signal;
  outcome result;

  auto handler() { return asio::bind_cancellation_slot(signal.slot(), result.recorder()); }
};

/// Starts waits and cancels them in every way, at random, and keeps count.
class random_script {
public:
  explicit random_script(unsigned seed) : random_(seed)
  {
    for (int i = 0; i < 8; ++i) timers_.emplace_back(c_.wheel);
  }

  void run(int steps)
  {
    for (int i = 0; i < steps; ++i) {
      step();
      if (below(4) == 0) c_.context.poll();
    }
    support::run_to_end(c_.context);
  }

  [[nodiscard]] std::size_t counted_as_cancelled() const { return cancelled_; }
  [[nodiscard]] const std::deque<signalled_wait>& waits() const { return waits_; }
  [[nodiscard]] wheel_stats stats() const { return c_.wheel.stats(); }

private:
  void step()
  {
    auto& timer = timers_[below(timers_.size())];
    switch (below(10)) {
      case 0: cancelled_ += timer.cancel(); break;
      case 1: cancelled_ += timer.cancel_one(); break;
      case 2: cancelled_ += timer.expires_after(below(4) * 300us); break;
      case 3: cancelled_ += timer.expires_at(c_.wheel.now() + below(4) * 300us); break;
      case 4: emit(); break;
      case 5:
        if (below(50) == 0) cancelled_ += c_.wheel.cancel_all();
        break;
      case 6:
      case 7: c_.wheel.async_wait(below(4) * 300us, waits_.emplace_back().handler()); break;
      default: timer.async_wait(waits_.emplace_back().handler()); break;
    }
  }

  // No function counts what a signal ends; only the stats do.
  void emit()
  {
    if (waits_.empty()) return;
    const auto before = c_.wheel.stats().cancelled;
    waits_[waits_.size() - 1 - below(std::min<std::size_t>(20, waits_.size()))].signal.emit(
      cancellation_type::terminal);
    cancelled_ += static_cast<std::size_t>(c_.wheel.stats().cancelled - before);
  }

  std::size_t below(std::size_t n)
  {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

  std::mt19937 random_;
  context_with_wheel c_{support::with_tick(100us)};
  std::deque<wheel_timer> timers_;
  std::deque<signalled_wait> waits_;
  std::size_t cancelled_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(exactly_once)

BOOST_AUTO_TEST_CASE(whatever_is_done_to_a_wait_it_ends_once)
{
  for (unsigned seed = 1; seed <= 10; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed)
    {
      random_script script(seed);
      script.run(3000);
      std::size_t aborted = 0;
      std::size_t succeeded = 0;
      for (const auto& wait : script.waits()) {
        BOOST_REQUIRE(wait.result.calls == 1);
        aborted += wait.result.aborted();
        succeeded += wait.result.succeeded();
      }
      BOOST_TEST(aborted + succeeded == script.waits().size());
      BOOST_TEST(aborted == script.counted_as_cancelled());
      BOOST_TEST(script.stats().started == script.waits().size());
      BOOST_TEST(script.stats().cancelled == aborted);
      BOOST_TEST(script.stats().expired == succeeded);
      BOOST_TEST(script.stats().pending == 0U);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_type_of_cancellation_aborts_a_plain_wait)
{
  for (const auto type : {cancellation_type::terminal, cancellation_type::partial,
                          cancellation_type::total, cancellation_type::all}) {
    context_with_wheel c;
    signalled_wait wait;
    c.wheel.async_wait(1h, wait.handler());
    wait.signal.emit(type);
    wait.signal.emit(type);
    BOOST_TEST(wait.result.pending());
    support::run_to_end(c.context);
    BOOST_TEST(wait.result.aborted());
  }
}

BOOST_AUTO_TEST_CASE(cancellation_of_no_type_leaves_a_plain_wait_alone)
{
  context_with_wheel c;
  signalled_wait wait;
  c.wheel.async_wait(2ms, wait.handler());
  wait.signal.emit(cancellation_type::none);
  support::run_to_end(c.context);
  BOOST_TEST(wait.result.succeeded());
}

BOOST_AUTO_TEST_CASE(a_wait_can_be_cancelled_until_its_handler_begins)
{
  context_with_wheel c;
  std::array<signalled_wait, 3> waits;
  wheel_timer timer(c.wheel);
  const auto deadline = c.wheel.now() + 2ms;
  std::size_t counted = 0;
  // The first handler of the tick runs while the others have expired but not begun.
  c.wheel.async_wait(deadline, [&](error_code) {
    waits[0].signal.emit(cancellation_type::terminal);
    counted = timer.cancel_one() + timer.cancel() + timer.expires_after(1h) + c.wheel.cancel_all();
  });
  timer.expires_at(deadline);
  c.wheel.async_wait(deadline, waits[0].handler());
  timer.async_wait(waits[1].handler());
  timer.async_wait(waits[2].handler());
  support::run_to_end(c.context);
  BOOST_TEST(counted == 2U);
  BOOST_TEST(c.wheel.stats().cancelled == 3U);
  for (const auto& wait : waits) BOOST_TEST(wait.result.aborted());
}

// Such a cancel takes no look at the wait.
BOOST_AUTO_TEST_CASE(the_one_wait_of_a_timer_can_be_cancelled_until_its_handler_begins)
{
  context_with_wheel c;
  std::array<outcome, 3> waits;
  std::array<std::optional<wheel_timer>, 3> timers;
  const auto deadline = c.wheel.now() + 2ms;
  std::size_t counted = 0;
  c.wheel.async_wait(deadline, [&](error_code) {
    counted = timers[0]->cancel() + timers[1]->expires_after(1h);
    timers[2].reset();
  });
  for (std::size_t i = 0; i < timers.size(); ++i) {
    timers[i].emplace(c.wheel, deadline);
    timers[i]->async_wait(waits[i].recorder());
  }
  support::run_to_end(c.context);
  BOOST_TEST(counted == 2U);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

// The same on the way to another executor than the wheel's.
BOOST_AUTO_TEST_CASE(the_one_wait_of_a_timer_can_be_cancelled_on_its_way_to_an_executor)
{
  context_with_wheel c;
  asio::io_context other;
  const auto there = other.get_executor();
  std::array<outcome, 3> waits;
  std::array<std::optional<wheel_timer>, 3> timers;
  const auto deadline = c.wheel.now() + 2ms;
  std::size_t counted = 0;
  c.wheel.async_wait(deadline, asio::bind_executor(there, [&](error_code) {
                       counted = timers[0]->cancel() + timers[1]->expires_after(1h);
                       timers[2].reset();
                     }));
  for (std::size_t i = 0; i < timers.size(); ++i) {
    timers[i].emplace(c.wheel, deadline);
    timers[i]->async_wait(asio::bind_executor(there, waits[i].recorder()));
  }
  support::run_to_end(c.context);  // they are sent
  support::run_to_end(other);
  BOOST_TEST(counted == 2U);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

// The wheel has found these waits due but not begun them, because more than a batch comes first.
BOOST_AUTO_TEST_CASE(a_wait_that_is_due_can_be_cancelled)
{
  context_with_wheel c;
  signalled_wait plain;
  std::array<outcome, 3> of_timers;
  std::array<wheel_timer, 3> timers{wheel_timer(c.wheel), wheel_timer(c.wheel),
                                    wheel_timer(c.wheel)};
  std::size_t counted = 0;
  support::act_while_due(
    c,
    [&] {
      const auto deadline = c.wheel.now() + 1500us;
      c.wheel.async_wait(deadline, plain.handler());
      for (std::size_t i = 0; i < timers.size(); ++i) {
        timers[i].expires_at(deadline);
        timers[i].async_wait(of_timers[i].recorder());
      }
    },
    [&] {
      plain.signal.emit(cancellation_type::terminal);
      counted = timers[0].cancel() + timers[1].cancel_one() + timers[2].expires_after(1h);
    });
  BOOST_TEST(counted == 3U);
  BOOST_TEST(plain.result.aborted());
  for (const auto& wait : of_timers) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(cancel_all_ends_what_is_due_as_well)
{
  constexpr std::size_t many = 200;
  support::with_time_enough(2ms, [&](std::chrono::milliseconds ahead) {
    context_with_wheel c;
    std::size_t aborted = 0;
    std::size_t counted = 0;
    const auto deadline = c.wheel.now() + ahead;
    c.wheel.async_wait(deadline, [&](error_code) {
      counted = c.wheel.cancel_all();
      BOOST_TEST(c.wheel.cancel_all() == 0U);
      BOOST_TEST(c.wheel.pending() == 0U);
    });
    for (std::size_t i = 0; i < many; ++i) {
      c.wheel.async_wait(i % 2 == 0 ? deadline : deadline + 1h,
                         [&](error_code ec) { aborted += ec == asio::error::operation_aborted; });
    }
    // A wait whose deadline is past when it starts does not queue behind the others.
    if (c.wheel.now() >= deadline) return false;
    support::run_to_end(c.context);
    BOOST_TEST(counted == many);
    BOOST_TEST(aborted == many);
    return true;
  });
}

BOOST_AUTO_TEST_CASE(cancel_all_counts_each_wait_once)
{
  context_with_wheel c;
  std::array<outcome, 5> waits;
  wheel_timer timer(c.wheel);
  timer.expires_after(1h);
  c.wheel.async_wait(1h, waits[0].recorder());
  c.wheel.async_wait(wheel_timer_service::time_point::max(), waits[1].recorder());
  timer.async_wait(waits[2].recorder());
  timer.async_wait(waits[3].recorder());
  timer.async_wait(waits[4].recorder());
  BOOST_TEST(timer.cancel_one() == 1U);
  BOOST_TEST(c.wheel.cancel_all() == 4U);
  BOOST_TEST(c.wheel.cancel_all() == 0U);
  BOOST_TEST(timer.cancel() == 0U);
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(with_the_context_a_handler_is_destroyed_uncalled)
{
  constexpr long many = 100;
  const auto alive = std::make_shared<int>(0);
  {
    context_with_wheel c;
    const auto never_called = [alive](error_code) { ++*alive; };
    wheel_timer cancelled(c.wheel);
    cancelled.expires_after(1h);
    for (long i = 0; i < many; ++i) {
      c.wheel.async_wait(i * 100ms, never_called);
      cancelled.async_wait(never_called);
    }
    BOOST_TEST(cancelled.cancel() == std::size_t{many});
    BOOST_TEST(alive.use_count() == 2 * many + 2);
  }
  BOOST_TEST(*alive == 0);
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
