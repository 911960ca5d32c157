// L0 base: large tables of zeroes, and prefetching.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace asio_wheel::detail {

/// Gives pages of zeroes back to the system.
struct unmap_zeroes {
  std::size_t bytes;

  void operator()(void* p) const noexcept;
};

/// Pages of zeroes from the system. A page takes memory once it is touched. Throws std::bad_alloc.
[[nodiscard]] void* map_zeroes(std::size_t bytes);

/// A fixed number of `T`s, all zero at first. Untouched pages take no memory: most of a large
/// table.
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

/// A hint that `*p` is about to be read and written. Never faults, whatever `p` is; does nothing
/// where the compiler has no such hint. An object, not a function: Boost's containers call their
/// own prefetch() unqualified, and would find ours for our elements.
inline constexpr auto prefetch = []([[maybe_unused]] const void* p) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(p, 1);
#endif
};

}  // namespace asio_wheel::detail
