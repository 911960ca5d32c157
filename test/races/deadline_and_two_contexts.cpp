// Race: operations of one context, run by two threads, and their deadlines on the wheel of another,
// run by a third. Now and then the wheel's context goes, with the deadlines that it has.
//
// What must hold: every operation ends once, with its own result or that of the deadline. An
// operation whose wheel is gone ends by itself.
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <memory>
#include <optional>
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

/// One of Asio's operations that may be cancelled only from its strand.
class operation {
public:
  operation(asio::io_context& context, std::chrono::nanoseconds length)
    : strand_(asio::make_strand(context)),
      timer_(strand_, length)
  {}

  template <class Handler>
  void start(wheel_timer_service& wheel, std::chrono::nanoseconds deadline, Handler h)
  {
    timer_.async_wait(timeout_after(wheel, deadline, asio::bind_executor(strand_, std::move(h))));
  }

private:
  asio::strand<asio::io_context::executor_type> strand_;
  asio::steady_timer timer_;
};

}  // namespace

int main()
{
  const auto options = support::with_shards(2, 20us);
  asio::io_context a;
  support::operation_balance balance;
  {
    support::running_threads run_a(a, 2);
    support::delays around(0us, 200us);
    const support::race_time racing;
    for (int round = 0; racing; ++round) {
      std::vector<std::unique_ptr<operation>> operations;
      std::atomic<int> left = 0;
      {
        const auto b = std::make_unique<support::context_with_wheel>(options);
        auto work = std::optional(asio::make_work_guard(b->context));
        std::thread run_b([&] { b->context.run(); });
        for (int i = 0; i < 64; ++i) {
          auto& op = operations.emplace_back(std::make_unique<operation>(a, around.next()));
          op->start(b->wheel, around.next(), balance.operation(left));
        }
        if (round % 2 == 0) {
          while (left > 0) std::this_thread::yield();
        } else {
          b->context.stop();
        }
        work.reset();
        run_b.join();
      }
      while (left > 0) std::this_thread::yield();
    }
  }
  return balance.check();
}
