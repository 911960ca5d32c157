// Race: one thread cancels all waits while others start some.

#include <chrono>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_tick(10us));
  support::balance balance;
  {
    support::running_threads loop(c.context, 1);
    const support::race_time on;
    support::in_threads(3, [&](int t) {
      while (on) {
        if (t == 0) {
          balance.cancelled(c.wheel.cancel_all());
        } else {
          for (int i = 0; i < 8; ++i) c.wheel.async_wait(i * 30us, balance.wait());
        }
      }
    });
    balance.cancelled(c.wheel.cancel_all());
  }
  return balance.check();
}
