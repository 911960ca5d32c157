// Race: a thread stops, moves and restarts the clock while others start and cancel waits.
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <thread>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  support::balance waits;
  {
    support::context_with_wheel c;
    const support::race_time going_on;
    std::atomic<bool> moving = true;
    support::in_threads(3, [&](int i) {
      if (i == 0) {
        while (going_on) {
          asio_wheel::virtual_time time(c.wheel);
          for (int step = 0; step < 20; ++step) time.advance(3ms);
          time.advance_to_next();
        }
        moving = false;
        return;
      }
      // The threads that start waits must not outrun the one that completes them.
      constexpr std::size_t most_outstanding = 10'000;
      asio_wheel::wheel_timer timer(c.wheel);
      for (int n = 0; moving; ++n) {
        while (moving && waits.outstanding() > most_outstanding) std::this_thread::yield();
        waits.cancelled(timer.expires_after(std::chrono::milliseconds{n % 10}));
        timer.async_wait(waits.wait());
        c.wheel.async_wait(timer.expiry(), waits.wait());
      }
      waits.cancelled(timer.cancel());
    });
    asio_wheel::virtual_time(c.wheel).advance(1min);
  }
  return waits.check();
}
