// Waits three times on a timing wheel: with a callback, a future and a coroutine. Ctrl-C cancels
// the waits: the callback gets an error as its argument, the future and the coroutine get an
// exception.
#include "common/command_line.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>

namespace {

namespace asio = boost::asio;
using asio_wheel::wheel_timer_service;
using boost::system::error_code;
using boost::system::system_error;
using std::chrono::milliseconds;

/// A thread that runs the context calls the callback.
void use_callback(wheel_timer_service& wheel, milliseconds delay)
{
  wheel.async_wait(delay, [delay](error_code ec) {
    if (ec)
      fmt::print("callback: {}\n", ec.message());
    else
      fmt::print("callback: {} ms have passed\n", delay.count());
  });
}

/// A future is for a thread that does not run the context: get() blocks it.
std::jthread use_future(wheel_timer_service& wheel, milliseconds delay)
{
  return std::jthread([delay, wait = wheel.async_wait(delay, asio::use_future)]() mutable {
    try {
      wait.get();
      fmt::print("future: {} ms have passed\n", delay.count());
    } catch (const system_error& e) {
      fmt::print("future: {}\n", e.code().message());
    }
  });
}

/// A coroutine waits without blocking anybody. It needs no token.
asio::awaitable<void> use_coroutine(wheel_timer_service& wheel, milliseconds delay)
{
  try {
    co_await wheel.async_wait(delay);
    fmt::print("coroutine: {} ms have passed\n", delay.count());
  } catch (const system_error& e) {
    fmt::print("coroutine: {}\n", e.code().message());
  }
}

void run(milliseconds delay)
{
  asio::io_context context;
  auto& wheel = asio_wheel::make_wheel(context);

  use_callback(wheel, delay);
  const std::jthread waiting = use_future(wheel, delay);

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code ec, int) {
    if (!ec) wheel.cancel_all();
  });
  // Waits that one thread started end in the order of their deadlines, so this one is the last.
  asio::co_spawn(context, use_coroutine(wheel, delay),
                 [&](std::exception_ptr) { signals.cancel(); });
  context.run();
}

constexpr std::string_view intro =
  R"(Usage: first_timer [option...]

Waits three times at once: with a callback, a future and a coroutine. Ctrl-C
cancels the waits.
)";

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("first_timer", [&] {
    int delay = 250;
    common::po::options_description options("Options");
    options.add_options()("delay", common::ranged(delay, "delay", 0, 3'600'000, "ms"),
                          "how long to wait");
    if (common::parse_command_line(argc, argv, intro, options)) run(milliseconds(delay));
    return EXIT_SUCCESS;
  });
}
