// Race: deadlines fire in one thread while their operations complete in another, and while others
// start. Every operation ends once, with its own result or that of the deadline, and frees its
// memory.
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
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
  support::operation_balance balance;
  {
    support::running_threads threads(c.context, 2);
    support::delays around(0us, 200us);
    const support::race_time racing;
    while (racing) {
      std::vector<std::unique_ptr<asio::steady_timer>> timers;
      std::atomic<int> left = 0;
      for (int i = 0; i < 32; ++i) {
        auto& timer = timers.emplace_back(std::make_unique<asio::steady_timer>(c.context));
        timer->expires_after(around.next());
        timer->async_wait(timeout_after(around.next(), balance.operation(left)));
        // Completes during its initiation, or shortly after.
        asio::post(c.context,
                   cancel_after(around.next(), [end = balance.operation()]() mutable { end({}); }));
      }
      while (left > 0) std::this_thread::yield();
    }
  }
  return balance.check(c.wheel.pending());
}
