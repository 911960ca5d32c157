// L2 service: memory for waits whose handlers bring no allocator of their own.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>

#include <cstddef>

namespace asio_wheel::detail {

/// Recycled blocks consist of whole cache lines: the unit of their sizes, and their alignment.
inline constexpr std::size_t op_line = 64;
inline constexpr std::size_t most_recycled_lines = 8;

/// A block of 1 to `most_recycled_lines` cache lines. Throws std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT void* allocate_recycled_op(std::size_t lines);
ASIO_WHEEL_EXPORT void deallocate_recycled_op(void* p, std::size_t lines) noexcept;

/// Gives the pages of free blocks back to the supply, other than those of which another thread
/// keeps a block for itself.
void release_recycled_ops() noexcept;

/// A block of any size and alignment, from operator new.
[[nodiscard]] ASIO_WHEEL_EXPORT void* allocate_unrecycled_op(std::size_t size,
                                                             std::size_t alignment);
ASIO_WHEEL_EXPORT void deallocate_unrecycled_op(void* p, std::size_t alignment) noexcept;

[[nodiscard]] constexpr bool is_recycled_op(std::size_t size, std::size_t alignment) noexcept
{
  return size <= most_recycled_lines * op_line && alignment <= op_line;
}
[[nodiscard]] constexpr std::size_t op_lines(std::size_t size) noexcept
{
  return (size + op_line - 1) / op_line;
}

/// A block of `size` bytes, at least one; recycled unless it is large or over-aligned. Throws
/// std::bad_alloc. Inline, so that the compiler makes the choice if it knows the size.
[[nodiscard]] inline void* allocate_op(std::size_t size,
                                       std::size_t alignment = alignof(std::max_align_t))
{
  return is_recycled_op(size, alignment) ? allocate_recycled_op(op_lines(size))
                                         : allocate_unrecycled_op(size, alignment);
}

/// Frees a block of allocate_op() with the same size and alignment, in any thread.
inline void deallocate_op(void* p, std::size_t size,
                          std::size_t alignment = alignof(std::max_align_t)) noexcept
{
  if (is_recycled_op(size, alignment))
    deallocate_recycled_op(p, op_lines(size));
  else
    deallocate_unrecycled_op(p, alignment);
}

/// Replaces std::allocator where waits are allocated.
template <class T>
class op_allocator {
public:
  using value_type = T;

  [[nodiscard]] T* allocate(std::size_t n)
  {
    return static_cast<T*>(allocate_op(n * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, std::size_t n) noexcept { deallocate_op(p, n * sizeof(T), alignof(T)); }
};

}  // namespace asio_wheel::detail
