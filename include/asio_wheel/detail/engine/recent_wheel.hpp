// L2 engine: the wheel that a thread used last, and its context.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/export.hpp>

namespace asio_wheel {
class wheel_timer_service;
}

namespace asio_wheel::detail {

/// The context's wheel, if this thread remembered it last and no wheel was destroyed since; nullptr
/// means nothing. Asio's own way locks a mutex and walks along a list: more than all the rest of a
/// deadline.
[[nodiscard]] ASIO_WHEEL_EXPORT wheel_timer_service* recent_wheel(
  const asio::execution_context& context) noexcept;

/// Makes `wheel` the one that this thread used last.
ASIO_WHEEL_EXPORT void remember_wheel(const asio::execution_context& context,
                                      wheel_timer_service& wheel) noexcept;

/// Call this when a wheel goes: no thread remembers a wheel any more.
void clear_recent_wheels() noexcept;

}  // namespace asio_wheel::detail
