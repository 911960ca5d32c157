// Race: a stream feeds a watchdog or a heartbeat while that moves. The sign of life arrives at the
// object that it has moved to.
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/timers/heartbeat_state.hpp>
#include <asio_wheel/detail/timers/watchdog_state.hpp>

#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = 20'000;

void spin(int n)
{
  static std::atomic<int> spins;
  for (int i = 0; i < n; ++i) spins.fetch_add(1, std::memory_order_relaxed);
}

/// Returns how many signs of life were lost. An hour after the latest, the operations end.
template <class State, class Option>
int count_lost(support::context_with_wheel& c, const Option& an_hour)
{
  detail::wheel_core& core = detail::core_of(c.wheel);
  State one(core, an_hour), two(core, an_hour);
  const detail::guard_ptr stream(new detail::operation_guard(core));
  stream->feed(one.guard());

  std::atomic<int> round{0}, fed{0};
  std::thread feeder([&] {
    for (int i = 1; i <= rounds; ++i) {
      while (round != i) std::this_thread::yield();
      spin(i % 16);
      stream->pass_on(detail::peer_activity::received);
      fed = i;
    }
  });
  int lost = 0;
  State *from = &one, *to = &two;
  for (int i = 1; i <= rounds; ++i) {
    const auto before = c.wheel.now();
    round = i;
    spin(i / 16 % 16);
    *to = std::move(*from);
    while (fed != i) std::this_thread::yield();
    const detail::moving_deadline& deadline = *to;
    if (deadline.guarded_until() < before + 1h) ++lost;
    std::swap(from, to);
  }
  feeder.join();
  return lost;
}

}  // namespace

int main()
{
  support::context_with_wheel c;
  const int by_watchdog = count_lost<detail::watchdog_state>(c, detail::duration(1h));
  const int by_heartbeat = count_lost<detail::heartbeat_state>(c, heartbeat_options{30min, 1});
  std::printf("lost of %d: watchdog %d, heartbeat %d\n", rounds, by_watchdog, by_heartbeat);
  return by_watchdog == 0 && by_heartbeat == 0 ? 0 : 1;
}
