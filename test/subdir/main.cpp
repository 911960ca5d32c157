// A consumer's whole program: one wait on the wheel, whichever Asio it is on. Fails if the wait
// does.
#include <asio_wheel.hpp>

#include <chrono>

int main()
{
  asio_wheel::asio::io_context context;
  bool done = false;
  asio_wheel::use_wheel(context).async_wait(std::chrono::milliseconds(1),
                                            [&](asio_wheel::error_code error) { done = !error; });
  context.run();
  return done ? 0 : 1;
}
