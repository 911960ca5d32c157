// Promise 9, fair: a burst of expiries leaves room for others, and is shared by the threads.
#include <algorithm>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "support/due.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;

namespace {

constexpr int burst = 5000;
constexpr int bound = 128;

/// Runs a context in which `burst` waits end at once beside a handler that keeps posting itself.
/// Returns the most waits that end between two of its turns.
class neighbour {
public:
  explicit neighbour(context_with_wheel& c) : c_(c) {}

  auto count()
  {
    return [this](error_code) {
      ++ended_;
      ++since_turn_;
    };
  }

  int most_between_turns()
  {
    turn();
    support::run_to_end(c_.context);
    BOOST_TEST(ended_ == burst);
    return most_;
  }

private:
  void turn()
  {
    most_ = std::max(most_, std::exchange(since_turn_, 0));
    if (ended_ < burst) asio::post(c_.context, [this] { turn(); });
  }

  context_with_wheel& c_;
  int ended_ = 0;
  int since_turn_ = 0;
  int most_ = 0;
};

/// Runs `burst` waits, ended by `end`, in three threads. The first handler waits until another
/// thread has run one as well.
template <class Start>
bool is_shared_by_threads(context_with_wheel& c, Start start)
{
  std::atomic<std::size_t> ended = 0;
  std::atomic<bool> first = true;
  std::atomic<bool> met = false;
  std::atomic<std::thread::id> first_thread{};
  for (int i = 0; i < burst; ++i) {
    start([&](error_code) {
      ++ended;
      if (first.exchange(false)) {
        first_thread = std::this_thread::get_id();
        support::eventually([&] { return met.load(); });
      } else if (std::this_thread::get_id() != first_thread.load()) {
        met = true;
      }
    });
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { c.context.run(); });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(ended.load() == std::size_t{burst});
  return met;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fair)

BOOST_AUTO_TEST_CASE(other_handlers_run_between_the_batches_of_an_expiry)
{
  context_with_wheel c;
  neighbour other(c);
  const auto deadline = c.wheel.now() + 30ms;
  for (int i = 0; i < burst; ++i) c.wheel.async_wait(deadline, other.count());
  BOOST_TEST(other.most_between_turns() <= bound);
}

BOOST_AUTO_TEST_CASE(other_handlers_run_between_the_batches_of_a_cancellation)
{
  context_with_wheel c;
  neighbour other(c);
  for (int i = 0; i < burst; ++i) c.wheel.async_wait(1h, other.count());
  BOOST_TEST(c.wheel.cancel_all() == std::size_t{burst});
  BOOST_TEST(other.most_between_turns() <= bound);
}

BOOST_AUTO_TEST_CASE(a_burst_of_past_waits_leaves_room_too)
{
  context_with_wheel c;
  neighbour other(c);
  for (int i = 0; i < burst; ++i) c.wheel.async_wait(0s, other.count());
  BOOST_TEST(other.most_between_turns() <= bound);
}

// Each wait that comes due meanwhile makes a pass, which must not add a delivery to those on their
// way.
BOOST_AUTO_TEST_CASE(a_burst_leaves_room_however_many_waits_come_due_beside_it)
{
  context_with_wheel c;
  neighbour other(c);
  const auto deadline = c.wheel.now() + 30ms;
  for (int i = 0; i < burst; ++i) {
    c.wheel.async_wait(deadline, [&c, count = other.count()](error_code ec) mutable {
      support::spin(c.wheel, 40us);
      count(ec);
    });
  }
  for (int i = 1; i <= 200; ++i) c.wheel.async_wait(deadline + i * 1ms, [](error_code) {});
  BOOST_TEST(other.most_between_turns() <= bound);
}

// Due and cancelled waits, of several shards, whose handlers run in a delivery or on strands. Half
// the bound, as a strand may run what was sent before in a turn of its own.
BOOST_AUTO_TEST_CASE(a_burst_of_all_kinds_leaves_room)
{
  for (const int run : {1, 7, 64, 96, 128, 500}) {
    context_with_wheel c(support::with_shards(4, 1ms));
    neighbour other(c);
    const auto deadline = c.wheel.now() + 50ms;
    std::vector<wheel_timer> cancelled;
    std::vector<asio::strand<asio::any_io_executor>> strands;
    for (int i = 0; i < 3; ++i) strands.push_back(asio::make_strand(c.wheel.get_executor()));
    const auto start = [&](int i) {
      const bool is_due = i / run % 3 != 0;
      const auto start_on = [&](auto handler) {
        if (is_due)
          c.wheel.async_wait(deadline, std::move(handler));
        else
          cancelled.emplace_back(c.wheel, 1h).async_wait(std::move(handler));
      };
      if (i / run % 2 == 0)
        start_on(other.count());
      else
        start_on(asio::bind_executor(strands[static_cast<std::size_t>(i % 3)], other.count()));
    };
    for (int from = 0; from < burst; from += burst / 4)
      std::thread([&] {
        for (int i = from; i < from + burst / 4; ++i) start(i);
      }).join();
    support::spin(c.wheel, deadline - c.wheel.now() + 2ms);
    cancelled.clear();
    BOOST_TEST(other.most_between_turns() <= bound / 2);
  }
}

BOOST_AUTO_TEST_CASE(several_threads_share_a_burst_of_expiries)
{
  context_with_wheel c;
  const auto deadline = c.wheel.now() + 30ms;
  BOOST_TEST(is_shared_by_threads(
    c, [&](auto handler) { c.wheel.async_wait(deadline, std::move(handler)); }));
}

BOOST_AUTO_TEST_CASE(several_threads_share_a_burst_of_cancellations)
{
  context_with_wheel c;
  wheel_timer timer(c.context, 1h);
  asio::post(c.context, [&] { timer.cancel(); });
  BOOST_TEST(is_shared_by_threads(c, [&](auto handler) { timer.async_wait(std::move(handler)); }));
}

BOOST_AUTO_TEST_CASE(handlers_that_wait_for_nothing_do_not_starve_a_deadline)
{
  // A handler that starts another wait of zero is always due, but a real deadline must still come.
  context_with_wheel c;
  bool done = false;
  int rounds = 0;
  const std::function<void(error_code)> again = [&](error_code) {
    ++rounds;
    if (!done) c.wheel.async_wait(0s, again);
  };
  again({});
  c.wheel.async_wait(5ms, [&](error_code ec) { done = !ec; });
  support::run_to_end(c.context);
  BOOST_TEST(done);
  BOOST_TEST(rounds > 1);
}

BOOST_AUTO_TEST_SUITE_END()
