// Event-loop timers: Boost.Asio's own asio::steady_timer.
//   steady             any_io_executor (what asio::steady_timer is), a callback per wait
//   steady_typed       the same with io_context::executor_type
//   steady_coroutine   any_io_executor, a coroutine per timer, by use_awaitable
//   steady_deferred    the same by deferred, which spares a coroutine frame per wait
// work_*.hpp describe the workloads, contender.hpp the rules; compared with timers_wheel,
// timers_libuv, timers_libevent and timers_libev.
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/version.hpp>

#include "asio_timers.hpp"
#include "workloads.hpp"

namespace {

using namespace bench;

using typed_timer = asio::basic_waitable_timer<steady_clock, asio::wait_traits<steady_clock>,
                                               asio::io_context::executor_type>;

struct steady : contender_base {
  static constexpr auto name = "steady";
  static constexpr bool many_threads = true;
  template <class Work>
  using timers = callback_timers<asio::steady_timer, no_service, Work>;
};

struct steady_typed : steady {
  static constexpr auto name = "steady_typed";
  template <class Work>
  using timers = callback_timers<typed_timer, no_service, Work>;
};

struct steady_coroutine : contender_base {
  static constexpr auto name = "steady_coroutine";
  template <class Work>
  using timers = coroutine_timers<asio::steady_timer, no_service, Work, asio::use_awaitable_t<>>;
};

struct steady_deferred : contender_base {
  static constexpr auto name = "steady_deferred";
  template <class Work>
  using timers = coroutine_timers<asio::steady_timer, no_service, Work, asio::deferred_t>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv,
                    contenders<steady, steady_typed, steady_coroutine, steady_deferred>(),
                    {{"boost", BOOST_LIB_VERSION}});
}
