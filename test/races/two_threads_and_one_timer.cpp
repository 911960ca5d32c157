// Race: two threads use one wheel_timer in every way except construction and destruction.
#include <chrono>

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
    asio_wheel::wheel_timer timer(c.wheel);
    const support::race_time on;
    support::in_threads(2, [&](int t) {
      for (int i = t; on; ++i) {
        timer.async_wait(balance.wait());
        switch (i % 40) {
          case 0: balance.cancelled(timer.expires_after(i % 3 * 10us)); break;
          case 10: balance.cancelled(timer.expires_at(timer.expiry() + 20us)); break;
          case 20: balance.cancelled(timer.cancel_one()); break;
          case 30: balance.cancelled(timer.cancel()); break;
          default: break;
        }
      }
    });
    balance.cancelled(timer.cancel());
  }
  return balance.check();
}
