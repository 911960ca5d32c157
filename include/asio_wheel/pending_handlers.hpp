// L2 engine: who waits.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/base/any_delay.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace asio_wheel {

/// What was pending in a wheel, by the type of the handler that waits.
struct pending_handlers {
  /// The waits whose handlers are of one type.
  struct row {
    std::string handler;          ///< the type, demangled
    std::uint64_t count = 0;      ///< how many of them wait
    detail::time_point earliest;  ///< when the first of them expires
    detail::time_point latest;    ///< when the last of them expires; max() is never
  };

  std::vector<row> rows;       ///< the largest count first
  detail::time_point read_at;  ///< the wheel's now() when the reading began
};

}  // namespace asio_wheel
