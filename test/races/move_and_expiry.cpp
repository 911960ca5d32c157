// Race: a thread moves timers at the moment at which the loop finds them expired.
#include <chrono>
#include <utility>

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
    support::delays delays(0us, 10us);
    for (const support::race_time on; on;) {
      asio_wheel::wheel_timer a(c.wheel, delays.next());
      a.async_wait(balance.wait());
      a.async_wait(balance.wait());
      asio_wheel::wheel_timer b(std::move(a));
      asio_wheel::wheel_timer to(c.wheel, delays.next());
      to.async_wait(balance.wait());
      to = std::move(b);
      to.async_wait(balance.wait());
      a = std::move(to);
      balance.cancelled(a.cancel_one());
    }
  }
  return balance.check(false);
}
