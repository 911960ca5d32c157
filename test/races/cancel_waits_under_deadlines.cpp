// Race: waits are cancelled in three threads while their deadlines come, which give way to them.
//
// What must hold: every operation ends, each once.
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <deque>

#include "support/balance.hpp"
#include "support/run.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  constexpr int operations = 2000;
  int rounds = 0;
  int left = 0;
  for (const support::race_time on; on && left == 0; ++rounds) {
    support::context_with_wheel c;
    std::deque<asio_wheel::wheel_timer> timers;
    std::deque<boost::asio::steady_timer> never;
    std::atomic<int> ended = 0;
    const auto count = [&ended](asio_wheel::error_code) { ++ended; };
    for (int i = 0; i < operations; ++i) {
      const auto delay = 2ms + i % 8 * 1ms;
      timers.emplace_back(c.wheel, 1h);
      timers.back().async_wait(asio_wheel::timeout_after(delay, count));
      never.emplace_back(c.context, boost::asio::steady_timer::time_point::max());
      never.back().async_wait(asio_wheel::timeout_after(c.wheel, delay, count));
      c.wheel.async_wait(delay, [&timers, i](asio_wheel::error_code) {
        timers[static_cast<std::size_t>(i)].cancel();
      });
    }
    support::running_threads threads(c.context, 3);
    if (!support::eventually([&ended] { return ended == 2 * operations; }))
      left = 2 * operations - ended;
    c.context.stop();
    threads.finish();
  }
  std::printf("%d rounds, %d operations were left\n", rounds, left);
  return rounds == 0 || left != 0;
}
