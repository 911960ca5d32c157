// A program with one of Asio's timers; wheel.cpp is the same on the wheel.
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

int main()
{
  boost::asio::io_context context;
  boost::asio::steady_timer timer(context, std::chrono::milliseconds(1));
  int result = 1;
  timer.async_wait([&](boost::system::error_code ec) { result = ec ? 1 : 0; });
  context.run();
  return result;
}
