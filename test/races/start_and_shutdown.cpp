// Race: threads start waits while the context is stopped, and it is destroyed with what they left.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>

#include <thread>
#include <vector>

#include "support/balance.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  const auto handlers = std::make_shared<std::atomic<int>>(0);
  int rounds = 0;
  for (const support::race_time on; on; ++rounds) {
    std::vector<asio_wheel::wheel_timer> survivors;
    {
      support::context_with_wheel c(support::with_tick(10us));
      for (int i = 0; i < 2; ++i) survivors.emplace_back(c.wheel, 1h);
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < 2; ++t) {
        threads.emplace_back([&c, &handlers, &timer = survivors[t]] {
          for (int i = 0; i < 200; ++i) {
            c.wheel.async_wait(i % 3 * 1h, [handlers](auto) { ++*handlers; });
            timer.async_wait([handlers](auto) { ++*handlers; });
            if (i % 8 == 0) timer.cancel();
          }
        });
      }
      threads.emplace_back([&c] { c.context.run(); });
      c.context.stop();
      for (auto& thread : threads) thread.join();
    }
    for (auto& timer : survivors) timer.async_wait([handlers](auto) { ++*handlers; });
  }
  std::printf("%d rounds, %d handlers called\n", rounds, handlers->load());
  if (handlers.use_count() == 1) return 0;
  std::printf("wrong: %ld handlers were neither called nor destroyed\n", handlers.use_count() - 1);
  return 1;
}
