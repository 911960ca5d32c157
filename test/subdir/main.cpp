// A consumer's whole program: one wait on the wheel, whichever Asio it is on, and its figures as
// text, for which it needs {fmt}. Fails if the wait does.
#include <asio_wheel.hpp>
#include <asio_wheel/fmt.hpp>

#include <fmt/core.h>
#include <chrono>

int main()
{
  asio_wheel::asio::io_context context;
  auto& wheel = asio_wheel::use_wheel(context);
  bool done = false;
  wheel.async_wait(std::chrono::milliseconds(1),
                   [&](asio_wheel::error_code error) { done = !error; });
  context.run();
  fmt::print("{}\n", wheel.stats());
  return done ? 0 : 1;
}
