// L0 base: large tables of zeroes, and prefetching.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#else
#include <cstdlib>
#endif

namespace asio_wheel::detail {

struct unmap_zeroes {
  std::size_t bytes;

  void operator()(void* p) const noexcept
  {
#if defined(__linux__)
    munmap(p, bytes);
#else
    std::free(p);
#endif
  }
};

/// A fixed number of `T`s, all zero at first. A page takes memory once it is touched.
template <class T>
using zeroes = std::unique_ptr<T[], unmap_zeroes>;

/// Throws std::bad_alloc.
template <class T>
[[nodiscard]] zeroes<T> make_zeroes(std::size_t size)
{
  const std::size_t bytes = size * sizeof(T);
#if defined(__linux__)  // where calloc may write the zeroes itself
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) p = nullptr;
#else
  void* const p = std::calloc(1, bytes);
#endif
  if (!p) throw std::bad_alloc();
  return zeroes<T>(static_cast<T*>(p), {bytes});
}

/// A hint that `*p` is about to be read and written. Never faults, whatever `p` is. An object, not
/// a function: Boost's containers call their own prefetch() unqualified, and would find ours.
inline constexpr auto prefetch = []([[maybe_unused]] const void* p) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(p, 1);
#endif
};

}  // namespace asio_wheel::detail
