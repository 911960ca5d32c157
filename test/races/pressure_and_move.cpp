// Race: watchdogs with an idle_window are moved while their guard, whose shard is another than that
// of their own waits, asks for their deadline, and while the pressure rises and falls.
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

/// Moves watchdogs to and fro whose guard belongs to another thread's shard.
void move_guarded(support::context_with_wheel& c, support::balance& balance,
                  const support::race_time& racing)
{
  while (racing) {
    std::vector<std::unique_ptr<asio::steady_timer>> operations;
    wheel_watchdog dog(c.wheel, idle_window{200us, 400us});
    std::thread([&] {
      for (int i = 0; i != 8; ++i) {
        auto& op = operations.emplace_back(
          std::make_unique<asio::steady_timer>(c.context, asio::steady_timer::time_point::max()));
        op->async_wait(dog.guard([ended = balance.wait()](error_code ec) {
          ended(ec == asio::error::timed_out ? error_code{} : ec);
        }));
      }
    }).join();
    dog.async_expired(balance.wait());
    for (const auto end = c.wheel.now() + 2ms; c.wheel.now() < end;) {
      wheel_watchdog away(std::move(dog));
      dog = std::move(away);
    }
    while (balance.outstanding() != 0) std::this_thread::yield();
  }
}

}  // namespace

int main()
{
  support::context_with_wheel c(support::with_shards(4, 10us));
  support::balance balance;
  {
    support::running_threads loop(c.context, 2);
    const support::race_time racing;
    std::thread presser([&] {
      for (unsigned i = 0; racing; ++i) {
        c.wheel.set_pressure(i % 8 / 7.0);
        std::this_thread::yield();
      }
    });
    move_guarded(c, balance, racing);
    presser.join();
  }
  return balance.check();
}
