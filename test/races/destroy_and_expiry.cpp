// Race: a thread destroys timers at the moment at which the loop finds them expired.
#include <chrono>
#include <deque>

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
    support::delays delays(0us, 30us);
    for (const support::race_time on; on;) {
      std::deque<asio_wheel::wheel_timer> timers;
      for (int i = 0; i < 16; ++i) {
        auto& timer = timers.emplace_back(c.wheel, delays.next());
        timer.async_wait(balance.wait());
        timer.async_wait(balance.wait());
      }
    }
  }
  return balance.check(false);
}
