// Race: one thread reads all counters of the service while others start, expire and cancel waits.
#include <atomic>
#include <chrono>
#include <cstdio>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_tick(10us));
  support::balance balance;
  std::atomic<int> contradictions = 0;
  {
    support::running_threads loop(c.context, 2);
    const support::race_time on;
    support::in_threads(3, [&](int t) {
      asio_wheel::wheel_timer timer(c.wheel);
      asio_wheel::wheel_stats last;
      while (on) {
        if (t == 0) {
          const auto stats = c.wheel.stats();
          const bool grows = stats.started >= last.started && stats.expired >= last.expired &&
                             stats.cancelled >= last.cancelled && stats.wakeups >= last.wakeups;
          const bool fits =
            stats.started == stats.pending + stats.expired + stats.cancelled + stats.met &&
            stats.lateness.count() <= stats.expired;
          if (!grows || !fits || c.wheel.options().shards == 0) ++contradictions;
          if (c.wheel.pending() > c.wheel.stats().started) ++contradictions;
          last = stats;
        } else {
          balance.cancelled(timer.expires_after(40us));
          timer.async_wait(balance.wait());
          c.wheel.async_wait(20us, balance.wait());
        }
      }
      balance.cancelled(timer.cancel());
    });
  }
  if (contradictions != 0) std::printf("wrong: %d readings contradict\n", contradictions.load());
  return balance.check() != 0 || contradictions != 0;
}
