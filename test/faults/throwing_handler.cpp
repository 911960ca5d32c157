// Fault: handlers throw when they are called, moved or destroyed.
//
// An exception leaves the function that was called: the initiation, which then starts nothing, or
// run(), and then only this handler is gone, called or not. If Asio dispatches handlers on the
// spot, it keeps their exceptions until the end of the batch of 64 waits, and several leave run()
// as one asio::multiple_exceptions. A handler that is destroyed uncalled, with its context or its
// operation, is moved once more: an exception there ends the process, as in Asio.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "faults/every_operation.hpp"
#include "support/from_handler.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using namespace faults;
using namespace std::chrono_literals;
using support::from_handler;
using support::run_through_exceptions;

namespace {

/// Throws when it is called.
struct throws_from_call : counted<> {
  using counted<>::counted;

  template <class... Args>
  void operator()(const Args&... args)
  {
    counted<>::operator()(args...);
    throw from_handler();
  }
};

/// Throws when it is destroyed after it was called.
struct throws_from_destructor : counted<> {
  using counted<>::counted;
  throws_from_destructor(throws_from_destructor&&) = default;
  ~throws_from_destructor() noexcept(false)
  {
    if (called) throw from_handler();
  }

  template <class... Args>
  void operator()(const Args&... args)
  {
    counted<>::operator()(args...);
    called = true;
  }

  bool called = false;
};

/// Throws from one of its moves.
struct throws_from_move : counted<> {
  throws_from_move(tally& t, std::size_t& moves_left) : counted<>(t), left(&moves_left) {}
  throws_from_move(throws_from_move&& other) : counted<>(std::move(other)), left(other.left)
  {
    if ((*left)-- == 0) throw from_handler();
  }

  std::size_t* left;
};

/// Starts operations, every other one with such a handler, and runs them through its exceptions.
template <class Handler, class Operation, class Act>
void check_that_no_other_is_lost(Act act)
{
  scene<Operation> s;
  s.make();
  for (int i = 0; i < 10; ++i) {
    s.start(counted<>(s));
    s.start(Handler(s));
  }
  act(s.wheel);
  BOOST_TEST(run_through_exceptions(s.context) >= 1);
  BOOST_TEST(s.called == s.started);
  BOOST_TEST(s.living() == 0U);
  BOOST_TEST(s.wheel.pending() == 0U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(throwing_handler)

BOOST_AUTO_TEST_CASE_TEMPLATE(of_any_operation_leaves_run_and_loses_no_other, Operation,
                              every_operation)
{
  check_that_no_other_is_lost<throws_from_call, Operation>([](auto&) {});
}

BOOST_AUTO_TEST_CASE_TEMPLATE(that_was_aborted_leaves_run_and_loses_no_other, Operation,
                              every_asynchronous_operation)
{
  check_that_no_other_is_lost<throws_from_call, Operation>([](auto& wheel) { wheel.cancel_all(); });
}

BOOST_AUTO_TEST_CASE(leaves_run_of_one_thread_and_the_others_go_on)
{
  constexpr int many = 1000;
  support::context_with_wheel c;
  std::atomic<int> called = 0;
  std::atomic<int> thrown = 0;
  const auto deadline = c.wheel.now() + 2ms;
  for (int i = 0; i < many; ++i) {
    c.wheel.async_wait(deadline, [&called, i](error_code) {
      ++called;
      if (i % 10 == 0) throw from_handler();
    });
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] { thrown += support::count_exceptions(c.context); });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(called == many);
  BOOST_TEST(thrown == many / 10);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(when_moved_starts_nothing_or_is_lost_alone, Operation,
                              every_operation)
{
  bool thrown = true;
  for (std::size_t moves = 0; thrown; ++moves) {
    scene<Operation> s;
    s.make();
    s.start(counted<>(s));
    std::size_t moves_left = moves;
    bool refused = false;
    try {
      s.start(throws_from_move(s, moves_left));
    } catch (const from_handler&) {
      refused = true;
    }
    BOOST_TEST(s.living() == s.started);
    BOOST_TEST(s.wheel.pending() == s.started);
    s.start(counted<>(s));
    const bool lost = run_through_exceptions(s.context) == 1;
    BOOST_TEST(s.called + (lost ? 1 : 0) == s.started);
    BOOST_TEST(s.living() == 0U);
    BOOST_TEST(s.wheel.pending() == 0U);
    thrown = refused || lost;
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(when_destroyed_leaves_run_and_loses_no_other, Operation,
                              every_asynchronous_operation)
{
  check_that_no_other_is_lost<throws_from_destructor, Operation>([](auto&) {});
}

BOOST_AUTO_TEST_SUITE_END()
