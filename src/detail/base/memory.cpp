// L0 base: pages of zeroes.
#include "memory.hpp"

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#else
#include <cstdlib>
#endif

namespace asio_wheel::detail {

#if defined(__linux__)

// Not calloc: it may write the zeroes itself.
void* map_zeroes(std::size_t bytes)
{
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

void unmap_zeroes::operator()(void* p) const noexcept
{
  munmap(p, bytes);
}

#else

void* map_zeroes(std::size_t bytes)
{
  void* const p = std::calloc(1, bytes);
  if (!p) throw std::bad_alloc();
  return p;
}

void unmap_zeroes::operator()(void* p) const noexcept
{
  std::free(p);
}

#endif

}  // namespace asio_wheel::detail
