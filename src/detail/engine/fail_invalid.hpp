// L2 engine: throws for a value out of its range.
#pragma once

#include <chrono>

namespace asio_wheel::detail {

/// Throws std::invalid_argument with a text as from printf, with name, value and range: "tick is
/// 0ns; it must be from 1us to 24h".
///
/// Without {fmt}: a program that prints nothing need not link it.
#if defined(__GNUC__) && !defined(__MINGW32__)
[[gnu::format(printf, 1, 2)]]
#endif
[[noreturn]] void
fail_invalid(const char* format, ...);

/// A duration, for %lldns.
[[nodiscard]] constexpr long long in_ns(std::chrono::nanoseconds d) noexcept
{
  return d.count();
}

}  // namespace asio_wheel::detail
