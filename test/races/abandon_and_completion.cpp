// Race: operations that do not listen complete in one thread while they are abandoned in another.
// Every handler is called once, every result is destroyed, and none is counted in the end. A policy
// counts each operation once.
#include <asio_wheel/abandon_after.hpp>
#include <asio_wheel/timeout_policy.hpp>
#include <atomic>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
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

using value = std::shared_ptr<int>;
using erased = asio::any_completion_handler<void(error_code, value)>;

/// Completes when the caller calls what it is given.
template <class Token>
auto async_give(std::unique_ptr<erased>& completion, Token&& token)
{
  return asio::async_initiate<Token, void(error_code, value)>(
    [&completion](auto handler) { completion = std::make_unique<erased>(std::move(handler)); },
    token);
}

}  // namespace

int main()
{
  constexpr int at_once = 32;
  auto options = support::with_tick(20us);
  options.shards = 2;
  support::context_with_wheel c(options);
  const auto life = std::make_shared<int>();
  timeout_policy policy("given", 100us);
  std::size_t of_policy = 0;
  std::atomic<std::size_t> started = 0, in_time = 0, abandoned = 0;
  {
    support::running_threads threads(c.context, 2);
    const auto strand = asio::make_strand(c.context);
    support::delays around(0us, 200us);
    const support::race_time racing;
    while (racing) {
      std::vector<std::unique_ptr<erased>> completions(at_once);
      std::atomic<int> left = at_once;
      for (int i = 0; i < at_once; ++i) {
        ++started;
        const auto end = [&, life](error_code ec, value) {
          ++(ec ? abandoned : in_time);
          --left;
        };
        auto& completion = completions[static_cast<std::size_t>(i)];
        if (i % 2 != 0) {
          policy.set(around.next());
          ++of_policy;
          async_give(completion, abandon_after(c.wheel, policy, end));
        } else {
          async_give(completion,
                     abandon_after(c.wheel, around.next(), asio::bind_executor(strand, end)));
        }
      }
      for (auto& completion : completions) {
        const auto until = std::chrono::steady_clock::now() + around.next() / at_once;
        while (std::chrono::steady_clock::now() < until) continue;
        (*std::move(completion))(error_code(), life);
      }
      while (left > 0) std::this_thread::yield();
    }
  }
  const auto of_wheel = c.wheel.stats().abandoned;
  std::printf("%zu started, %zu in time, %zu abandoned, %zu of them for good\n", started.load(),
              in_time.load(), abandoned.load(), static_cast<std::size_t>(of_wheel));
  const auto figures = policy.stats();
  const bool right = started == in_time + abandoned && in_time > 0 && abandoned > 0 &&
                     figures.started == of_policy &&
                     figures.started == figures.met + figures.expired && of_wheel == 0 &&
                     life.use_count() == 1;
  return right ? 0 : 1;
}
