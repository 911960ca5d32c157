// The result of one async_tick.
#pragma once

#include <asio_wheel.hpp>

#include "support/outcome.hpp"

namespace support {

struct tick_outcome : outcome {
  asio_wheel::wheel_timer_service::time_point at;  ///< when the tick was due

  /// A handler that writes here. The outcome must outlive it.
  [[nodiscard]] auto recorder()
  {
    return [this](boost::system::error_code ec, asio_wheel::wheel_timer_service::time_point tick) {
      outcome::recorder()(ec);
      at = tick;
    };
  }
};

}  // namespace support
