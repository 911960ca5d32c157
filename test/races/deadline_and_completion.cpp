// Race: deadlines fire in one thread while their operations complete in another, and while others
// start. Every operation ends once, with its own result or that of the deadline, and frees its
// memory.
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

std::atomic<std::size_t> started = 0;
std::atomic<std::size_t> succeeded = 0;
std::atomic<std::size_t> timed_out = 0;
std::atomic<std::size_t> other = 0;

auto entry()
{
  ++started;
  return [](error_code ec) {
    if (!ec)
      ++succeeded;
    else if (ec == asio::error::timed_out)
      ++timed_out;
    else
      ++other;
  };
}

}  // namespace

int main()
{
  auto options = support::with_tick(20us);
  options.shards = 2;
  support::context_with_wheel c(options);
  {
    support::running_threads threads(c.context, 2);
    support::delays around(0us, 200us);
    const support::race_time racing;
    while (racing) {
      std::vector<std::unique_ptr<asio::steady_timer>> timers;
      std::atomic<int> left = 32;
      for (int i = 0; i < 32; ++i) {
        auto& timer = timers.emplace_back(std::make_unique<asio::steady_timer>(c.context));
        timer->expires_after(around.next());
        timer->async_wait(timeout_after(around.next(), [&left, end = entry()](error_code ec) {
          end(ec);
          --left;
        }));
        // Completes during its initiation, or shortly after.
        asio::post(c.context, cancel_after(around.next(), [end = entry()] { end({}); }));
      }
      while (left > 0) std::this_thread::yield();
    }
  }
  std::printf("%zu started, %zu succeeded, %zu timed out, %zu otherwise, %zu still pending\n",
              started.load(), succeeded.load(), timed_out.load(), other.load(),
              static_cast<std::size_t>(c.wheel.pending()));
  const bool right = started == succeeded + timed_out && other == 0 && timed_out > 0 &&
                     succeeded > 0 && c.wheel.pending() == 0;
  return right ? 0 : 1;
}
