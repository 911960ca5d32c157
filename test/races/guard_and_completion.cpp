// Guarded operations complete, are started and are cut short in two threads and two contexts, while
// their watchdogs are touched, expire and are destroyed. Every operation ends once, and nothing
// stays in the wheel.
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_shards(2, 20us));
  asio::io_context elsewhere;
  support::operation_balance balance;
  {
    support::running_threads here(c.context, 2);
    support::running_threads there(elsewhere, 2);
    support::delays around(0us, 300us);
    const support::race_time racing;
    while (racing) {
      std::vector<std::unique_ptr<asio::steady_timer>> timers;
      std::optional<wheel_watchdog> dog(std::in_place, c.wheel, 100us);
      std::atomic<int> left = 0;
      for (int i = 0; i < 32; ++i) {
        auto& timer = timers.emplace_back(
          std::make_unique<asio::steady_timer>(i % 2 != 0 ? elsewhere : c.context));
        timer->expires_after(around.next());
        timer->async_wait(dog->guard(balance.operation(left)));
        if (i % 8 == 0) dog->touch();
        if (i == 20) {
          wheel_watchdog moved(std::move(*dog));
          dog.emplace(std::move(moved));
        }
      }
      if (around.next() < 150us) dog.reset();
      while (left > 0) std::this_thread::yield();
    }
  }
  return balance.check(c.wheel.pending());
}
