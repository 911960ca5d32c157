// Race: one thread asks who waits while others start, expire and cancel. What stays is counted,
// once for each slot that it is in meanwhile.
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <list>
#include <string>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

namespace {

struct stays {
  void operator()(boost::system::error_code) const {}
};

}  // namespace

int main()
{
  support::context_with_wheel c(support::with_tick(10us));
  support::balance balance;
  std::atomic<int> contradictions = 0;
  // Far and near, so that they cascade and lie in one slot with those that come and go.
  constexpr std::uint64_t staying = 5000;
  std::list<asio_wheel::wheel_timer> timers;
  support::delays delay(100s, 200s);
  for (std::uint64_t i = 0; i < staying; ++i)
    timers.emplace_back(c.wheel, delay.next()).async_wait(stays{});
  asio_wheel::wheel_watchdog watchdog(c.wheel, 1h);
  watchdog.async_expired([](boost::system::error_code) {});
  {
    support::running_threads loop(c.context, 2);
    const support::race_time on;
    auto strand = boost::asio::make_strand(c.context);
    support::in_threads(4, [&](int t) {
      asio_wheel::wheel_timer timer(c.wheel);
      while (on) {
        if (t <= 1) {
          for (const auto& row : c.wheel.pending_by_handler().rows) {
            if (row.handler.find("stays") != std::string::npos &&
                (row.count < staying || row.count > 2 * staying))
              ++contradictions;
            if (row.count == 0 || row.earliest > row.latest) ++contradictions;
          }
          if (!c.wheel.next_expiry()) ++contradictions;
        } else {
          balance.cancelled(timer.expires_after(40us));
          timer.async_wait(balance.wait());
          c.wheel.async_wait(20us, balance.wait());
          c.wheel.async_wait(20us, boost::asio::bind_executor(strand, balance.wait()));
          c.wheel.async_wait(2560us, balance.wait());  // which is cascaded
          watchdog.touch();
        }
      }
      balance.cancelled(timer.cancel());
    });
    c.wheel.cancel_all();
  }
  if (contradictions != 0) std::printf("wrong: %d readings contradict\n", contradictions.load());
  return balance.check(false) != 0 || contradictions != 0;
}
