// L2 service: memory for waits whose handlers bring no allocator of their own.
#pragma once

#include <asio_wheel/ground/export.hpp>

#include <cstddef>

namespace asio_wheel {

/// `size` bytes, in cache lines of their own unless the wait is a large one. Throws std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT void* allocate_op(std::size_t size);
ASIO_WHEEL_EXPORT void deallocate_op(void* p, std::size_t size) noexcept;

/// Stands in for std::allocator where waits are allocated.
template <class T>
class op_allocator {
public:
  using value_type = T;

  [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(allocate_op(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { deallocate_op(p, n * sizeof(T)); }
};

}  // namespace asio_wheel
