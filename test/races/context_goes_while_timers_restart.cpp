// Race: threads restart and cancel timers of a context that is destroyed meanwhile.
//
// What must hold: every wait ends once, or its handler is destroyed uncalled. A timer whose context
// has gone does nothing more.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "support/balance.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

std::atomic<std::size_t> started = 0;
std::atomic<std::size_t> called = 0;
std::atomic<std::size_t> destroyed = 0;
std::atomic<std::size_t> wrong = 0;  ///< called twice, or with another error

/// A handler that is called once, or destroyed.
class handler {
public:
  handler() { ++started; }
  handler(handler&& h) noexcept : pending_(std::exchange(h.pending_, false)) {}
  handler& operator=(handler&&) = delete;
  ~handler()
  {
    if (pending_) ++destroyed;
  }

  void operator()(error_code ec)
  {
    if (!std::exchange(pending_, false) || (ec && ec != boost::asio::error::operation_aborted))
      ++wrong;
    ++called;
  }

private:
  bool pending_ = true;
};

/// Restarts and cancels timers, which are the thread's own, and one that all threads share.
void restart(std::deque<wheel_timer>& own, wheel_timer& shared, const std::atomic<bool>& stop)
{
  support::delays delays(0us, 60us);
  for (int i = 0; !stop; ++i) {
    for (auto& timer : own) {
      timer.expires_after(i % 4 == 0 ? 1h : delays.next());
      timer.async_wait(handler());
      if (i % 3 == 0) timer.async_wait(handler());
      if (i % 2 == 0) timer.cancel();
      if (i % 5 == 0) timer.cancel_one();
    }
    shared.async_wait(handler());
    shared.expires_after(delays.next());
  }
}

/// A context that lives for a moment, run by a thread of its own, and threads that outlive it.
void live_shortly(std::chrono::nanoseconds life)
{
  constexpr std::size_t others = 2;
  const auto options = support::with_shards(2, 10us);
  auto c = std::make_unique<support::context_with_wheel>(options);
  std::deque<std::deque<wheel_timer>> timers(others);
  for (auto& own : timers) {
    for (int i = 0; i < 4; ++i) own.emplace_back(c->wheel);
  }
  wheel_timer shared(c->wheel);
  c->wheel.async_wait(1h, handler());

  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (auto& own : timers) threads.emplace_back([&] { restart(own, shared, stop); });
  c->context.run_for(life);
  c.reset();
  // Some threads notice only when the next context is at the same address.
  std::this_thread::yield();
  const support::context_with_wheel next(options);
  stop = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace

int main()
{
  int rounds = 0;
  support::delays lives(0us, 2ms);
  for (const support::race_time on; on; ++rounds) live_shortly(lives.next());
  std::printf("%d contexts: %zu started, %zu called, %zu destroyed, %zu wrong\n", rounds,
              started.load(), called.load(), destroyed.load(), wrong.load());
  const bool right = wrong == 0 && started == called + destroyed && called > 0 && destroyed > 0;
  return right ? 0 : 1;
}
