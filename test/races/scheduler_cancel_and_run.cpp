// Race: threads schedule and cancel tasks by key at the moment at which the loop runs them.
//
// What must hold: a task that runs once either runs or was cancelled, and one that was refused does
// neither; at the end nobody is left.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>

#include "support/threads.hpp"
#include "support/wheel.hpp"

#include "support/balance.hpp"

using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_shards(4, 10us));
  asio_wheel::keyed_scheduler<int> scheduler(c.wheel);
  std::atomic<std::size_t> accepted = 0;
  std::atomic<std::size_t> ran = 0;
  std::atomic<std::size_t> cancelled = 0;
  std::atomic<std::size_t> repeats = 0;
  {
    support::running_threads loop(c.context, 2);
    const support::race_time on;
    support::in_threads(2, [&](int t) {
      support::delays delays(0us, 30us);
      for (int i = t; on; ++i) {
        const int once = i % 8;
        const int repeated = 8 + i % 4;
        if (scheduler.run_after(once, delays.next(), [&ran] { ++ran; })) ++accepted;
        scheduler.run_every(repeated, 10us, [&repeats] { ++repeats; });
        if (scheduler.cancel((i + 3) % 8)) ++cancelled;
        scheduler.cancel(8 + (i + 2) % 4);
      }
    });
    for (int key = 8; key < 12; ++key) scheduler.cancel(key);
  }
  std::printf("%zu accepted, %zu ran, %zu cancelled, %zu repeats, %zu left\n", accepted.load(),
              ran.load(), cancelled.load(), repeats.load(), scheduler.size());
  return accepted == 0 || accepted != ran + cancelled || scheduler.size() != 0;
}
