// L0 base: large tables of zeroes, and prefetching.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace asio_wheel::detail {

struct free_zeroes {
  void operator()(void* p) const noexcept { std::free(p); }
};

/// A fixed number of `T`s, all zero at first. A large table is of fresh pages, which take no memory
/// until they are touched.
template <class T>
using zeroes = std::unique_ptr<T[], free_zeroes>;

/// Throws std::bad_alloc.
template <class T>
[[nodiscard]] zeroes<T> make_zeroes(std::size_t size)
{
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignof(std::max_align_t));
  void* const p = std::calloc(size, sizeof(T));
  if (!p) throw std::bad_alloc();
  return zeroes<T>(static_cast<T*>(p));
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
