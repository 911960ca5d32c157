// Event-loop timers: this library.
//   wheel             wheel_timer, a callback per wait
//   wheel_coroutine   wheel_timer, a coroutine per timer, by use_awaitable
//   wheel_wait        wheel_timer_service::async_wait with a 24-byte callback: no timer object, and
//                     no way to cancel it
// Compared with timers_steady and timers_libev.
#include <asio_wheel.hpp>

#include "workloads.hpp"

namespace {

using namespace bench;

struct wheel_service {
  static void install(asio::io_context& context, const options& o) { install_wheel(context, o); }
};

template <class Work>
class service_waits : public asio_loop {
public:
  service_waits(const options& o, Work& work) : work_{work}, wheel_{install_wheel(context(), o)} {}

  void start_after(std::size_t i, nanoseconds delay) { wheel_.async_wait(delay, handler(i, {})); }
  void start_at(std::size_t i, time_point deadline, time_point)
  {
    wheel_.async_wait(deadline, handler(i, deadline));
  }

private:
  auto handler(std::size_t index, time_point deadline)
  {
    const auto result = [this, index, deadline](const error_code& ec) {
      work_.completed(index, deadline, ec == asio::error::operation_aborted);
    };
    static_assert(sizeof result == 24, "the memory workload says so");
    return result;
  }

  Work& work_;
  asio_wheel::wheel_timer_service& wheel_;
};

struct wheel : contender_base {
  static constexpr auto name = "wheel";
  static constexpr bool many_threads = true;
  template <class Work>
  using timers = callback_timers<asio_wheel::wheel_timer, wheel_service, Work>;
};

struct wheel_coroutine : contender_base {
  static constexpr auto name = "wheel_coroutine";
  template <class Work>
  using timers = coroutine_timers<asio_wheel::wheel_timer, wheel_service, Work>;
};

struct wheel_wait : contender_base {
  static constexpr auto name = "wheel_wait";
  static constexpr bool cancels = false;
  static constexpr bool many_threads = true;
  template <class Work>
  using timers = service_waits<Work>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<wheel, wheel_coroutine, wheel_wait>());
}
