// Counts the waits that ended, and those among them that ended too early.
#pragma once

#include <asio_wheel.hpp>
#include <cstddef>

namespace support {

struct early_count {
  asio_wheel::wheel_timer_service& wheel;
  std::size_t ended = 0;
  std::size_t early = 0;

  /// A handler for a wait until `deadline`, which should succeed. This object must outlive it.
  [[nodiscard]] auto check(asio_wheel::wheel_timer_service::time_point deadline)
  {
    return [this, deadline](boost::system::error_code ec) {
      ++ended;
      if (ec || wheel.now() < deadline) ++early;
    };
  }
};

}  // namespace support
