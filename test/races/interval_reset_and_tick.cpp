// Race: threads reset, cancel and move on an interval at the moment at which the loop takes its
// ticks.
//
// What must hold: every async_tick ends once, with success or operation_aborted; after a cancel all
// that were pending end, though the next tick is an hour away.
#include <chrono>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_shards(4, 10us));
  support::balance balance;
  const auto tick = [&balance] {
    return [end = balance.wait()](asio_wheel::error_code ec,
                                  asio_wheel::wheel_timer_service::time_point) { end(ec); };
  };
  {
    support::running_threads loop(c.context, 2);
    asio_wheel::wheel_interval shared(c.wheel, 20us, asio_wheel::missed_tick::delay);
    const support::race_time on;
    support::in_threads(3, [&](int t) {
      for (int i = t; on; ++i) {
        shared.async_tick(tick());
        if (i % 7 == 0) shared.reset();
        if (i % 31 == 0) shared.cancel();
        if (i % 5 == 0) {
          asio_wheel::wheel_interval own(c.wheel, c.wheel.now() + 10us, 1h);
          own.async_tick(tick());
          own.async_tick(tick());
          if (i % 2 == 0) own.reset();
        }
      }
    });
    shared.reset();
    shared.cancel();
  }
  return balance.check(false);
}
