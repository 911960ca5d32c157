// Race: threads end that own a thread_local context, while others start and end waits.
//
// What must hold: each wait that such a context leaves behind is destroyed once. Its memory goes to
// other threads at once, although the thread's own store of blocks has ended before the context.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

thread_local std::unique_ptr<support::context_with_wheel> own;

/// Starts waits in the thread's own context; some end before the thread does.
void live_shortly(const std::shared_ptr<int>& handlers)
{
  // Constructs it before the thread's store of blocks, so that it is destroyed after that.
  own.reset();
  own = std::make_unique<support::context_with_wheel>();
  for (int i = 0; i < 50; ++i) own->wheel.async_wait(i % 2 * 1h, [handlers](error_code) {});
  own->context.poll();
}

}  // namespace

int main()
{
  const auto handlers = std::make_shared<int>();
  std::atomic<int> ended = 0;
  {
    const support::race_time on;
    support::in_threads(3, [&](int) {
      while (on) {
        std::thread([&] { live_shortly(handlers); }).join();
        live_shortly(handlers);
        ++ended;
      }
    });
  }
  std::printf("%d threads ended\n", ended.load());
  if (handlers.use_count() == 1) return 0;
  std::printf("wrong: %ld handlers were left behind\n", handlers.use_count() - 1);
  return 1;
}
