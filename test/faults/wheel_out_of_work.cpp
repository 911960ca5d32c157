// Fault: the wheel is in a context that has nothing left to do while deadlines that it has passed
// on are in their handlers' context. Nobody runs the wheel's context then, so nothing may come back
// to it.
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/run.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;

namespace {

void run_to_end_of(asio::io_context& context)
{
  context.run();
}
void run_to_end_of(asio::thread_pool& pool)
{
  pool.join();
}

/// Several operations of a context that another thread runs, whose deadlines come at once.
/// `start(wheel, operation, handler)` starts one. `come(wheel)` may bring the deadlines.
template <class Context, class Executor, class Start, class Come>
void check_all_end(Start start, Come come)
{
  constexpr int operations = 4;
  for (int round = 0; round != 10; ++round) {
    asio::io_context home;
    auto busy = asio::make_work_guard(home);
    Context of_wheel;
    wheel_timer_service& wheel = use_wheel(of_wheel);
    const auto strand = asio::make_strand(home);
    const Executor ex(strand);
    std::atomic<int> ended = 0;
    std::vector<std::unique_ptr<asio::steady_timer>> objects;
    for (int i = 0; i != operations; ++i) {
      objects.push_back(std::make_unique<asio::steady_timer>(home, 1h));
      start(wheel, *objects.back(), asio::bind_executor(ex, [&](error_code) { ++ended; }));
    }
    come(wheel);
    std::thread other([&] { home.run(); });
    run_to_end_of(of_wheel);
    BOOST_TEST(support::eventually([&] { return ended == operations; }));
    asio::post(strand, [&] {
      for (const auto& object : objects) object->cancel();
    });
    busy.reset();
    other.join();
  }
}

template <class Context>
void check_each_kind()
{
  using any = asio::any_io_executor;
  const auto wait = [](wheel_timer_service&) {};
  check_all_end<Context, any>(
    [](auto& wheel, auto& object, auto h) { object.async_wait(timeout_after(wheel, 2ms, h)); },
    wait);
  check_all_end<Context, any>(
    [](auto& wheel, auto& object, auto h) { object.async_wait(abandon_after(wheel, 2ms, h)); },
    wait);
  check_all_end<Context, asio::any_completion_executor>(
    [](auto& wheel, auto& object, auto h) { object.async_wait(abandon_after(wheel, 2ms, h)); },
    wait);
  check_all_end<Context, asio::strand<asio::io_context::executor_type>>(
    [](auto& wheel, auto& object, auto h) { object.async_wait(cancel_after(wheel, 1h, h)); },
    [](wheel_timer_service& wheel) { wheel.cancel_all(); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wheel_out_of_work)

BOOST_AUTO_TEST_CASE(in_a_context_that_has_run_to_its_end)
{
  check_each_kind<asio::io_context>();
}

BOOST_AUTO_TEST_CASE(in_a_pool_that_was_joined)
{
  check_each_kind<asio::thread_pool>();
}

BOOST_AUTO_TEST_CASE(guards_end_their_operations_all_the_same)
{
  for (int round = 0; round != 10; ++round) {
    asio::io_context home;
    auto busy = asio::make_work_guard(home);
    asio::io_context of_wheel;
    wheel_watchdog dog(use_wheel(of_wheel), 2ms);
    const auto strand = asio::make_strand(home);
    asio::steady_timer first(home, 1h);
    asio::steady_timer second(home, 1h);
    std::atomic<int> ended = 0;
    for (asio::steady_timer* object : {&first, &second, &first})
      object->async_wait(dog.guard(asio::bind_executor(strand, [&](error_code) { ++ended; })));
    std::thread other([&] { home.run(); });
    of_wheel.run();
    BOOST_TEST(support::eventually([&] { return ended == 3; }));
    asio::post(strand, [&] {
      first.cancel();
      second.cancel();
    });
    busy.reset();
    other.join();
  }
}

BOOST_AUTO_TEST_SUITE_END()
