// Race: a thread asks when a task runs next, and whether it is live, at the moment at which its
// last run begins.
//
// What must hold: an expiry is one that the task has had, and not one of a run that never comes.
#include <asio_wheel.hpp>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_shards(4, 10us));
  asio_wheel::keyed_scheduler<int> scheduler(c.wheel);
  std::atomic<std::size_t> ran = 0;
  std::atomic<std::size_t> asked = 0;
  std::atomic<std::size_t> wrong = 0;
  {
    support::running_threads loop(c.context, 1);
    const support::race_time on;
    support::in_threads(2, [&](int t) {
      while (on) {
        if (t == 0) {
          scheduler.run_after(0, 0s, [&ran] { ++ran; });
          scheduler.run_every(
            1, 1h, [&ran] { ++ran; }, 2);
          scheduler.reschedule(1, 0s);
          scheduler.cancel(1);
          scheduler.run_after(1, -1s, [&ran] { ++ran; });
        } else {
          const auto latest = c.wheel.now() + 1h + 1s;
          for (const int key : {0, 1}) {
            const auto expiry = scheduler.expiry(key);
            if (!expiry) continue;
            ++asked;
            if (*expiry > latest) ++wrong;
          }
        }
      }
    });
    scheduler.cancel_all();
  }
  std::printf("%zu ran, %zu were asked, %zu wrong\n", ran.load(), asked.load(), wrong.load());
  return ran == 0 || asked == 0 || wrong != 0;
}
