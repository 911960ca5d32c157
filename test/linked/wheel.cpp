// A program with one timer on the wheel; steady.cpp is the same on Asio's.
#include <asio_wheel/wheel_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>

int main()
{
  boost::asio::io_context context;
  asio_wheel::wheel_timer timer(context, std::chrono::milliseconds(1));
  int result = 1;
  timer.async_wait([&](boost::system::error_code ec) { result = ec ? 1 : 0; });
  context.run();
  return result;
}
