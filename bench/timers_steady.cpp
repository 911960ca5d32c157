// Event-loop timers: Boost.Asio's own asio::steady_timer.
//   steady             a callback per wait
//   steady_coroutine   a coroutine per timer, by use_awaitable
// Compared with timers_wheel and timers_libev.
#include <boost/asio/steady_timer.hpp>

#include "workloads.hpp"

namespace {

using namespace bench;

struct steady : contender_base {
  static constexpr auto name = "steady";
  static constexpr bool many_threads = true;
  template <class Work>
  using timers = callback_timers<asio::steady_timer, no_service, Work>;
};

struct steady_coroutine : contender_base {
  static constexpr auto name = "steady_coroutine";
  template <class Work>
  using timers = coroutine_timers<asio::steady_timer, no_service, Work>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<steady, steady_coroutine>());
}
