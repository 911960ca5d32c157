// L2 engine: which wheel this thread used last, and in which context.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/export.hpp>

namespace asio_wheel {
class wheel_timer_service;
}

namespace asio_wheel::detail {

/// The context's wheel, if it is the last one that this thread remembered and none has been
/// destroyed since; nullptr says nothing. Asio's own way takes a mutex and a walk along a list,
/// which is more than all the rest of a deadline.
[[nodiscard]] ASIO_WHEEL_EXPORT wheel_timer_service* recent_wheel(
  const asio::execution_context& context) noexcept;

/// Makes `wheel` the one that this thread used last.
ASIO_WHEEL_EXPORT void remember_wheel(const asio::execution_context& context,
                                      wheel_timer_service& wheel) noexcept;

/// To be called when a wheel goes: all threads forget theirs.
void forget_wheels() noexcept;

}  // namespace asio_wheel::detail
