// L0 ground: arrays of zeroes that take memory only where they are touched.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace asio_wheel::detail {

/// Gives pages of zeroes back to the system.
struct unmap_zeroes {
  std::size_t bytes;

  void operator()(void* p) const noexcept;
};

/// Pages of zeroes from the system, which take memory once they are touched. Throws std::bad_alloc.
[[nodiscard]] void* map_zeroes(std::size_t bytes);

/// A fixed number of `T`s, all zero at first. What is never touched, most of a large table, takes
/// no memory.
template <class T>
using zeroes = std::unique_ptr<T[], unmap_zeroes>;

/// Throws std::bad_alloc.
template <class T>
[[nodiscard]] zeroes<T> make_zeroes(std::size_t size)
{
  static_assert(std::is_trivially_destructible_v<T>);
  const std::size_t bytes = size * sizeof(T);
  return zeroes<T>(static_cast<T*>(map_zeroes(bytes)), {bytes});
}

}  // namespace asio_wheel::detail
