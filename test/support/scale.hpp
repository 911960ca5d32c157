// Scales the work of a test to builds that differ in speed by a factor of fifty.
#pragma once

#include <cstddef>

namespace support {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool under_address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_sanitizer = under_address_sanitizer || __has_feature(thread_sanitizer);
#else
inline constexpr bool under_sanitizer = under_address_sanitizer;
#endif

#if defined(NDEBUG)
inline constexpr bool optimised = true;
#else
inline constexpr bool optimised = false;
#endif

/// `n` in a release build, and a number that takes about as long in the others.
[[nodiscard]] constexpr std::size_t scaled(std::size_t n)
{
  return under_sanitizer ? n / 40 : optimised ? n : n / 5;
}

}  // namespace support
