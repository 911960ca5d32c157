// Says how much of the heap is in use, and makes it run out; for test programs with a heap.cpp.
#pragma once

#include <cstddef>
#include <limits>

namespace support {

/// Bytes of operator new that are not deleted yet.
[[nodiscard]] std::size_t heap_in_use() noexcept;

/// While it lives, this thread's calls of operator new throw std::bad_alloc, except the first ones.
/// If `refusals` is given, only that many calls throw. With `asio_too`, so does Asio's allocator
/// for what it does not recycle, if the C library is glibc.
class heap_limit {
public:
  enum class reach { operator_new, asio_too };

  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  explicit heap_limit(std::size_t calls_left, std::size_t refusals = unlimited,
                      reach r = reach::operator_new) noexcept;
  heap_limit(const heap_limit&) = delete;
  heap_limit& operator=(const heap_limit&) = delete;
  ~heap_limit();

  /// Whether a call was refused.
  [[nodiscard]] bool was_reached() const noexcept;
};

}  // namespace support
