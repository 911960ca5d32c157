// The act `start` of costs.cpp on the wheel. It has a file of its own because what the compiler
// makes of the other acts depends on what else their file has.
#include "start.hpp"

#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>

namespace bench {

void start_waits(asio_wheel::wheel_timer_service& wheel, std::size_t n)
{
  for (std::size_t i = 0; i < n; ++i)
    wheel.async_wait(std::chrono::seconds{30}, [](const boost::system::error_code&) {});
}

}  // namespace bench
