// L2 engine: throws for a value out of its range.
#pragma once

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>

namespace asio_wheel::detail {

/// Throws std::invalid_argument with a text as from printf, with name, value and range: "tick is
/// 0ns; it must be from 1us to 24h".
///
/// Without {fmt}: a program that prints nothing need not link it.
#if defined(__GNUC__) && !defined(__MINGW32__)
[[gnu::format(printf, 1, 2)]]
#endif
[[noreturn]] inline void
fail_invalid(const char* format, ...)
{
  std::array<char, 256> text{};
  std::va_list values;
  va_start(values, format);
  static_cast<void>(std::vsnprintf(text.data(), text.size(), format, values));
  va_end(values);
  throw std::invalid_argument(text.data());
}

/// A duration, for %lldns.
[[nodiscard]] constexpr long long in_ns(std::chrono::nanoseconds d) noexcept
{
  return d.count();
}

}  // namespace asio_wheel::detail
