// Race: threads take their timers from one context to another, use the wheels of several, and make
// and destroy contexts of their own meanwhile.
//
// What must hold: no wait of one context is completed by another, or left behind by its own.
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

std::atomic<int> strangers = 0;

/// A handler that checks where it is called, and that it ends once.
auto entry(support::balance& balance, asio::io_context& home)
{
  return [&home, end = balance.wait()](error_code ec) mutable {
    if (!home.get_executor().running_in_this_thread()) ++strangers;
    end(ec);
  };
}

/// A context that lives for a moment, perhaps at the address of an earlier one. Its wheel is found
/// by the executor, and is destroyed with waits that hold `handlers`.
void live_shortly(const std::shared_ptr<int>& handlers, wheel_timer& survivor)
{
  asio::io_context context;
  auto& wheel = use_wheel(context.get_executor());
  for (int i = 0; i < 8; ++i) wheel.async_wait(i % 2 * 1h, [handlers](error_code) {});
  survivor = wheel_timer(context, 1h);
  survivor.async_wait([handlers](error_code) {});
  context.poll();
}

}  // namespace

int main()
{
  std::array<support::context_with_wheel, 2> contexts{
    support::context_with_wheel(support::with_tick(10us)),
    support::context_with_wheel(support::with_tick(50us))};
  asio::thread_pool pool(1);
  support::balance balance;
  const auto handlers = std::make_shared<int>();
  {
    support::running_threads first(contexts[0].context, 1);
    support::running_threads second(contexts[1].context, 1);
    const support::race_time on;
    support::in_threads(3, [&](int t) {
      wheel_timer wanderer(contexts[0].context);
      wheel_timer survivor(contexts[1].context);
      for (int i = t; on; ++i) {
        auto& c = contexts[static_cast<std::size_t>(i % 2)];
        // Cancels the waits of the other context, and moves here.
        wanderer = wheel_timer(c.context, i % 3 * 20us);
        wanderer.async_wait(entry(balance, c.context));
        use_wheel(c.context).async_wait(i % 5 * 10us, entry(balance, c.context));
        use_wheel(pool).async_wait(10us, balance.wait());
        if (i % 16 == 0) live_shortly(handlers, survivor);
      }
    });
  }
  pool.join();
  std::printf("%d handlers were called in another context\n", strangers.load());
  if (handlers.use_count() != 1)
    std::printf("wrong: %ld handlers were left behind\n", handlers.use_count() - 1);
  return balance.check(false) != 0 || strangers != 0 || handlers.use_count() != 1;
}
