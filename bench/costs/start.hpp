#pragma once

#include <asio_wheel/wheel_timer_service.hpp>

#include <cstddef>

namespace bench {

/// Starts waits that nobody cancels.
void start_waits(asio_wheel::wheel_timer_service& wheel, std::size_t n);

}  // namespace bench
