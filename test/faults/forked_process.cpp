// Fault: the process forks while waits are pending.
//
// With notify_fork() around the fork, as Asio demands, both processes have all the waits, and each
// completes or destroys its own. A child that neither runs nor destroys the context needs no
// notification. And a child may make contexts of its own, whatever other threads were doing:
// ASIO_WHEEL_FORKS says how often that is tried.
#include <atomic>
#include <boost/asio/execution_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "support/child.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/scale.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::execution_context;
using support::child;
using support::context_with_wheel;
using support::outcome;

namespace {

/// Waits that are pending when the process forks, and their ends in both processes.
struct waits_across_a_fork {
  explicit waits_across_a_fork(bool asleep) : c(std::in_place)
  {
    for (int i = 0; i < 100; ++i) {
      const auto deadline = c->wheel.now() + (5 + i % 10) * 1ms;
      c->wheel.async_wait(deadline, [this, deadline, alive = life](error_code ec) {
        ++succeeded;
        if (ec || c->wheel.now() < deadline) ++wrong;
      });
    }
    timer.emplace(c->wheel, 1h);
    timer->async_wait(aborted.recorder());
    // Either the wheel has set its timer, or it is about to.
    if (asleep) c->context.poll();
  }

  /// Ends all waits, and tries some new ones.
  [[nodiscard]] bool go_on()
  {
    outcome later;
    c->wheel.async_wait(20ms, [&](error_code ec) {
      later.recorder()(ec);
      timer->cancel();
    });
    c->context.run();
    return succeeded == 100 && wrong == 0 && aborted.aborted() && later.succeeded() &&
           c->wheel.pending() == 0;
  }

  std::optional<context_with_wheel> c;
  std::optional<wheel_timer> timer;
  outcome aborted;
  int succeeded = 0;
  int wrong = 0;
  std::shared_ptr<int> life = std::make_shared<int>();
};

template <class Act>
void check_fork(Act in_child)
{
  for (const bool asleep : {false, true}) {
    waits_across_a_fork waits(asleep);
    waits.c->context.notify_fork(execution_context::fork_prepare);
    child process([&] {
      waits.c->context.notify_fork(execution_context::fork_child);
      return in_child(waits);
    });
    waits.c->context.notify_fork(execution_context::fork_parent);
    BOOST_TEST(waits.go_on());
    BOOST_TEST(process.went_well());
  }
}

/// Starts and ends more waits than a thread keeps memory for.
bool use(context_with_wheel& c)
{
  int succeeded = 0;
  for (int i = 0; i < 300; ++i) c.wheel.async_wait(1ms, [&](error_code ec) { succeeded += !ec; });
  c.context.restart();
  c.context.run();
  return succeeded == 300;
}

int forks()
{
  const char* const given = std::getenv("ASIO_WHEEL_FORKS");
  return given ? std::stoi(given) : static_cast<int>(support::scaled(2000));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(forked_process)

BOOST_AUTO_TEST_CASE(that_keeps_running_completes_all_waits_and_so_does_its_parent)
{
  check_fork([](waits_across_a_fork& waits) { return waits.go_on(); });
}

BOOST_AUTO_TEST_CASE(that_destroys_its_context_destroys_its_waits_alone)
{
  check_fork([](waits_across_a_fork& waits) {
    const int before = waits.succeeded;
    waits.c.reset();
    return waits.life.use_count() == 1 && waits.succeeded == before;
  });
}

BOOST_AUTO_TEST_CASE(that_makes_another_wheel_leaves_the_first_alone)
{
  check_fork([](waits_across_a_fork&) {
    context_with_wheel mine;
    outcome wait;
    mine.wheel.async_wait(2ms, wait.recorder());
    mine.context.run();
    return wait.succeeded();
  });
}

BOOST_AUTO_TEST_CASE(that_does_not_run_its_context_disturbs_nobody)
{
  waits_across_a_fork waits(true);
  child process([] { return true; });
  BOOST_TEST(process.went_well());
  BOOST_TEST(waits.go_on());
}

BOOST_AUTO_TEST_CASE(of_a_child_has_the_waits_too)
{
  check_fork([](waits_across_a_fork& waits) {
    waits.c->context.notify_fork(execution_context::fork_prepare);
    child grandchild([&] {
      waits.c->context.notify_fork(execution_context::fork_child);
      return waits.go_on();
    });
    waits.c->context.notify_fork(execution_context::fork_parent);
    return waits.go_on() && grandchild.went_well();
  });
}

// Not with a sanitizer: a child inherits the locks of its runtime as other threads left them.
BOOST_AUTO_TEST_CASE(of_a_parent_whose_other_threads_use_wheels_uses_wheels_too)
{
  if (support::under_sanitizer) return;
  std::atomic<bool> stop = false;
  const auto busy = [&] {
    context_with_wheel c;
    while (!stop) {
      std::deque<wheel_timer> timers;
      for (int i = 0; i < 600; ++i) timers.emplace_back(c.wheel, 1h).async_wait([](error_code) {});
      timers.clear();
      c.context.restart();
      c.context.poll();
    }
  };
  std::thread first(busy), second(busy);
  context_with_wheel inherited;
  int wrong = 0;
  for (int i = 0; i < forks() && wrong < 3; ++i) {
    inherited.context.notify_fork(execution_context::fork_prepare);
    child process([&] {
      ::alarm(20);  // a child that hangs goes wrong
      if (i % 2 == 0) return use(*std::make_unique<context_with_wheel>());
      inherited.context.notify_fork(execution_context::fork_child);
      return use(inherited);
    });
    inherited.context.notify_fork(execution_context::fork_parent);
    if (!process.went_well()) ++wrong;
    if (i % 8 == 0 && !use(inherited)) ++wrong;
  }
  stop = true;
  first.join();
  second.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
