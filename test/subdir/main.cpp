// A consumer's whole program: one wait on the wheel. Fails if the wait does.
#include <asio_wheel.hpp>

#include <boost/asio/io_context.hpp>
#include <chrono>

int main()
{
  boost::asio::io_context context;
  bool done = false;
  asio_wheel::use_wheel(context).async_wait(
    std::chrono::milliseconds(1), [&](boost::system::error_code error) { done = !error; });
  context.run();
  return done ? 0 : 1;
}
