// Race: cancel_all() comes while a guard has expired and its operations are being told, and right
// behind it the guard's deadline moves to later.
//
// What must hold: every operation ends.
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <deque>
#include <thread>

#include "support/balance.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  constexpr int operations = 5000;
  int rounds = 0;
  int left = 0;
  for (const support::race_time on; on && left == 0; ++rounds) {
    support::context_with_wheel c;
    asio_wheel::wheel_watchdog dog(c.wheel, 1h);
    std::deque<boost::asio::steady_timer> never;
    std::atomic<int> ended = 0;
    for (int i = 0; i < operations; ++i) {
      never.emplace_back(c.context, boost::asio::steady_timer::time_point::max());
      never.back().async_wait(dog.guard([&ended](asio_wheel::error_code) { ++ended; }));
    }
    dog.set_timeout(2ms);
    dog.touch();
    support::running_threads threads(c.context, 2);
    while (c.wheel.stats().expired == 0) std::this_thread::yield();
    c.wheel.cancel_all();
    dog.set_timeout(1h);
    if (!support::eventually([&ended] { return ended == operations; })) left = operations - ended;
    c.context.stop();
    threads.finish();
  }
  std::printf("%d rounds, %d operations were left\n", rounds, left);
  return rounds == 0 || left != 0;
}
