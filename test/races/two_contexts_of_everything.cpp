// Race: two threads, each with a context of its own, which it makes, uses for everything, at times
// for very many waits, and destroys, whatever the other does meanwhile. Operations of one have
// their deadlines on the wheel of the other.
//
// What must hold: each handler is called once, or destroyed; the waits that end are those that were
// started.
#include <array>
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "support/account.hpp"
#include "support/balance.hpp"
#include "support/scale.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::account;
using support::accounted;

namespace {

/// Where both threads wait for each other.
class meeting {
public:
  void come()
  {
    const unsigned mine = arrived_++ / 2;
    while (arrived_ / 2 <= mine) std::this_thread::yield();
  }

private:
  std::atomic<unsigned> arrived_ = 0;
};

/// A context with a wheel and everything that can wait on it.
struct world {
  void start(wheel_timer_service& other, int round, account& books)
  {
    if (round % 3 == 0) {
      for (std::size_t i = 0; i < support::scaled(20'000); ++i)
        home.wheel.async_wait(1h, accounted(books));
    }
    for (int i = 0; i < 50; ++i) {
      home.wheel.async_wait(i * 40us, accounted(books));
      timer.async_wait(accounted(books));
      auto& op = operations.emplace_back(home.context, i * 40us);
      op.async_wait(timeout_after(other, (50 - i) * 40us, accounted(books)));
      auto& guarded = operations.emplace_back(home.context, 1h);
      guarded.async_wait(dog.guard(accounted(books)));
      tasks.run_after(i, i * 40us, accounted(books));
    }
    interval.async_tick(accounted(books));
    beats.async_next(accounted(books));
    dog.async_expired(accounted(books));
  }

  void run(int round)
  {
    home.context.run_for(1ms);
    if (round % 3 == 0) home.wheel.cancel_all();
    if (round % 4 == 0) timer.cancel();
    home.context.restart();
    home.context.run_for(round % 2 * 2ms);
  }

  support::context_with_wheel home{support::with_tick(20us)};
  wheel_timer timer{home.wheel, 1ms};
  wheel_interval interval{home.wheel, 500us};
  wheel_watchdog dog{home.wheel, 1500us};
  heartbeat beats{home.wheel, {.interval = 1ms, .max_missed = 2}};
  keyed_scheduler<int> tasks{home.wheel};
  std::deque<asio::steady_timer> operations;
};

}  // namespace

int main()
{
  meeting everybody;
  account books;
  std::array<std::optional<world>, 2> worlds;
  std::atomic<bool> goes_on = true;
  const support::race_time on;
  support::in_threads(2, [&](int thread) {
    auto& mine = worlds[static_cast<std::size_t>(thread)];
    auto& other = worlds[static_cast<std::size_t>(1 - thread)];
    for (int round = 0; goes_on; ++round) {
      everybody.come();
      mine.emplace();
      everybody.come();
      mine->start(other->home.wheel, round + thread, books);
      everybody.come();
      mine->run(round + thread);
      if (round % 4 == thread) std::this_thread::sleep_for(300us);
      mine.reset();
      if (thread == 0) goes_on = static_cast<bool>(on);
      everybody.come();
    }
  });
  std::printf("%zu handlers, %zu called, %zu destroyed\n", books.made.load(), books.called.load(),
              books.destroyed.load());
  return books.made > 0 && books.is_balanced() ? 0 : 1;
}
