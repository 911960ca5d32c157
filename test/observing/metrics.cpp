// Prints a wheel's metrics: what Prometheus' own promtool is to find nothing wrong with, and a
// program to stop at the probes of.
#include <asio_wheel.hpp>
#include <asio_wheel/fmt.hpp>

#include <fmt/core.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <thread>

using namespace std::chrono_literals;

int main()
{
  boost::asio::io_context context;
  auto& wheel = asio_wheel::make_wheel(context);
  const auto ignore = [](boost::system::error_code) {};
  wheel.async_wait(1ms, [](boost::system::error_code) { std::this_thread::sleep_for(20ms); });
  for (int i = 0; i < 100; ++i) wheel.async_wait(1ms + i * 100us, ignore);
  asio_wheel::wheel_timer timer(wheel, 1h);
  timer.async_wait(ignore);
  timer.cancel();
  asio_wheel::timeout_policy brief("a \"brief\" one", 1ms);
  asio_wheel::timeout_policy ample("ample", 1h);
  for (auto* policy : {&brief, &ample})
    wheel.async_wait(20ms, asio_wheel::timeout_after(*policy, ignore));
  context.run();
  fmt::print("{}", asio_wheel::prometheus(wheel.stats(), R"(wheel="clients",zone="b \"2\"")"));
  const asio_wheel::timeout_policy* const policies[] = {&brief, &ample};
  fmt::print("{}", asio_wheel::prometheus(policies, R"(zone="b")"));
}
