// A wheel in virtual time, which counts from the beginning of the case.
#pragma once

#include <asio_wheel.hpp>
#include <chrono>

#include "support/wheel.hpp"

namespace support {

/// The case begins at the beginning of a tick, so whole numbers of ticks are exact.
struct wheel_in_virtual_time : context_with_wheel {
  explicit wheel_in_virtual_time(asio_wheel::wheel_options options = {})
    : context_with_wheel(options)
  {
    time.align();
    context.restart();  // it has run out of work, and cases may poll it
    start = wheel.now();
  }

  [[nodiscard]] asio_wheel::wheel_timer_service::duration elapsed() const
  {
    return wheel.now() - start;
  }

  asio_wheel::virtual_time time{wheel};
  asio_wheel::wheel_timer_service::time_point start;
};

}  // namespace support
