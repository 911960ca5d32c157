// What must not compile: the case that REFUSED names. check.cmake reads what the compiler says.
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <vector>

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

int main()
{
  asio::io_context context;
  asio::cancellation_signal signal;
  wheel_timer timer(context, 1s);
  wheel_watchdog dog(context, 1s);
  wheel_interval ticks(context, 1s);
  heartbeat beat(context, {1s, 3});
  tcp_stream stream(context);
  using endpoint = asio::ip::tcp::endpoint;
  const std::vector<endpoint> endpoints;
  const auto any_of_them = [](error_code, const endpoint&) { return true; };
  timeout_policy policy("a policy", 1s);
  const auto handler = [](error_code) {};
  [[maybe_unused]] const auto wrong = [](int, int) {};
  const auto bind = [&signal](auto token) {
    return asio::bind_cancellation_slot(signal.slot(), token);
  };
  timer.async_wait(timeout_after(1s, bind(handler)));  // the other way round
  stream.async_connect(endpoints, [](error_code, const endpoint&) {});
  stream.async_connect(endpoints, any_of_them, [](error_code, const endpoint&) {});
#if REFUSED == 1
  timer.async_wait(bind(timeout_after(1s, handler)));
#elif REFUSED == 2
  timer.async_wait(bind(cancel_after(1s)));
#elif REFUSED == 3
  timer.async_wait(bind(dog.guard(handler)));
#elif REFUSED == 4
  timer.async_wait(bind(asio::as_tuple(timeout_after(1s, handler))));
#elif REFUSED == 5
  timer.async_wait(asio::bind_executor(context.get_executor(), bind(cancel_after(1s, handler))));
#elif REFUSED == 11
  timer.async_wait(wrong);
#elif REFUSED == 12
  use_wheel(context).async_wait(1s, wrong);
#elif REFUSED == 13
  dog.async_expired(wrong);
#elif REFUSED == 14
  ticks.async_tick(wrong);
#elif REFUSED == 15
  beat.async_next(wrong);
#elif REFUSED == 16
  stream.async_connect(endpoints[0], wrong);
#elif REFUSED == 17
  stream.async_connect(endpoints, wrong);
#elif REFUSED == 18
  stream.async_connect(endpoints, any_of_them, wrong);
#elif REFUSED == 19
  stream.async_connect(endpoints.begin(), endpoints.end(), wrong);
#elif REFUSED == 21
  timer.async_wait(timeout_after(5, handler));
#elif REFUSED == 22
  timer.expires_after(5);
#elif REFUSED == 23
  use_wheel(context).async_wait(0.5, handler);
#elif REFUSED == 24
  wheel_watchdog of_a_number(context, 30);
#elif REFUSED == 25
  timer.async_wait(timeout_at(policy, handler));
#endif
}
