// Race: threads set a watchdog's timeout, shorter and longer, and move it, while others touch it
// and the loop files its waits again.
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_shards(4, 10us));
  support::balance balance;
  {
    support::running_threads loop(c.context, 1);
    asio_wheel::wheel_watchdog dog(c.wheel, 1h);
    // Moves exclude all else that the program does, but nothing that the loop does.
    std::shared_mutex moving;
    const support::race_time on;
    support::in_threads(3, [&](int t) {
      for (int i = t; on; ++i) {
        if (i % 64 == 0) {
          const std::unique_lock lock(moving);
          asio_wheel::wheel_watchdog away(std::move(dog));
          dog = std::move(away);
        }
        const std::shared_lock lock(moving);
        switch (i % 8) {
          case 0: dog.async_expired(balance.wait()); break;
          case 1: dog.set_timeout(1h); break;
          case 3: dog.set_timeout((1 + i % 50) * 1us); break;
          case 5: dog.set_timeout((1 + i % 300) * 1us); break;
          default: dog.touch();
        }
      }
    });
    balance.cancelled(dog.cancel());
  }
  return balance.check();
}
