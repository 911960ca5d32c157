// Race: a thread stops, moves and restarts the clock while a pool runs the wheel.
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>

#include "support/balance.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

int main()
{
  support::balance waits;
  {
    asio::thread_pool pool(2);
    auto& wheel = asio_wheel::make_wheel(pool);
    const support::race_time going_on;
    while (going_on) {
      for (int i = 0; i < 100; ++i)
        wheel.async_wait(std::chrono::microseconds{i * 50}, waits.wait());
      asio_wheel::virtual_time time(wheel, [&] { asio::post(pool, asio::use_future).get(); });
      for (int step = 0; step < 10; ++step) time.advance(300us);
    }
    waits.cancelled(wheel.cancel_all());
    pool.wait();
  }
  return waits.check();
}
