// The heap of a test program that has a heap.cpp beside its cases: how much of it is in use, and
// a way to let it run out.
#pragma once

#include <cstddef>
#include <limits>

namespace support {

/// Bytes that operator new gave out and nobody gave back yet.
[[nodiscard]] std::size_t heap_in_use() noexcept;

/// While it lives, this thread's calls of operator new throw std::bad_alloc, but for the first
/// ones; and for the later ones, if the number of `refusals` is limited.
class heap_limit {
public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  explicit heap_limit(std::size_t calls_left, std::size_t refusals = unlimited) noexcept;
  heap_limit(const heap_limit&) = delete;
  heap_limit& operator=(const heap_limit&) = delete;
  ~heap_limit();

  /// Whether a call was refused.
  [[nodiscard]] bool was_reached() const noexcept;
};

}  // namespace support
