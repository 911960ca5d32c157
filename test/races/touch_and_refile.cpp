// Race: threads touch a watchdog and a heartbeat, wait on them and cancel, while the loop finds
// their waits due, files them again and completes them.
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
    support::running_threads loop(c.context, 2);
    asio_wheel::wheel_watchdog dog(c.wheel, 40us);
    asio_wheel::heartbeat beat(c.wheel, {40us, 3});
    const support::race_time on;
    support::in_threads(2, [&](int t) {
      for (int i = t; on; ++i) {
        dog.touch();
        if (i % 3 == 0) beat.sent();
        if (i % 7 == 0) beat.received();
        if (i % 16 == 0) {
          dog.async_expired(balance.wait());
          beat.async_next([end = balance.wait()](asio_wheel::error_code ec,
                                                 asio_wheel::heartbeat_event) mutable { end(ec); });
        }
        if (i % 500 == 0) balance.cancelled(beat.cancel());
        if (i % 1001 == 0) balance.cancelled(dog.cancel());
      }
    });
    balance.cancelled(dog.cancel());
    balance.cancelled(beat.cancel());
  }
  return balance.check();
}
