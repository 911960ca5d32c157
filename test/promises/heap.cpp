// Replaces operator new for the whole program, for support/heap.hpp.
#include "support/heap.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(_WIN32) || defined(__GLIBC__)
#include <malloc.h>
#endif

namespace {

constexpr std::size_t unlimited = support::heap_limit::unlimited;

constinit std::atomic<std::size_t> in_use{0};
constinit thread_local std::size_t calls_left = unlimited;
constinit thread_local std::size_t refusals_left = unlimited;
constinit thread_local bool refused = false;
constinit thread_local bool includes_asio = false;

/// Whether this call of operator new must fail.
bool refuse() noexcept
{
  if (calls_left == unlimited) return false;
  if (calls_left != 0) {
    --calls_left;
    return false;
  }
  if (refusals_left == 0) return false;
  if (refusals_left != unlimited) --refusals_left;
  return refused = true;
}

#if defined(__GLIBC__)
bool refuse_asio() noexcept
{
  return includes_asio && refuse();
}
#endif

// Windows has no std::aligned_alloc.
#if defined(_WIN32)
void* take(std::size_t alignment, std::size_t size) noexcept
{
  return _aligned_malloc(size, alignment);
}
void give_back(void* block) noexcept
{
  _aligned_free(block);
}
#else
void* take(std::size_t alignment, std::size_t size) noexcept
{
#if defined(__GLIBC__)
  return ::memalign(alignment, size);
#else
  return std::aligned_alloc(alignment, size);
#endif
}
void give_back(void* block) noexcept
{
  std::free(block);
}
#endif

/// Each block has its size in front, in a header that keeps the alignment.
constexpr std::size_t header(std::size_t alignment)
{
  return std::max(alignment, std::size_t{__STDCPP_DEFAULT_NEW_ALIGNMENT__});
}

void* allocate(std::size_t size, std::size_t alignment)
{
  if (refuse()) throw std::bad_alloc();
  const std::size_t front = header(alignment);
  const std::size_t total = (front + size + front - 1) / front * front;
  auto* const block = static_cast<std::byte*>(take(front, total));
  if (!block) throw std::bad_alloc();
  ::new (block) std::size_t(size);
  in_use += size;
  return block + front;
}

void deallocate(void* p, std::size_t alignment) noexcept
{
  if (!p) return;
  auto* const block = static_cast<std::byte*>(p) - header(alignment);
  in_use -= *reinterpret_cast<std::size_t*>(block);
  give_back(block);
}

}  // namespace

#if defined(__GLIBC__)
// Where the memory of Asio's own operations comes from.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept
{
  if (!refuse_asio()) return ::memalign(alignment, size);
  errno = ENOMEM;
  return nullptr;
}
#endif

void* operator new(std::size_t size)
{
  return allocate(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment)
{
  return allocate(size, static_cast<std::size_t>(alignment));
}
// Sanitizers have one of their own, which does not call the one above.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept
try {
  return allocate(size, 1);
} catch (...) {
  return nullptr;
}
void operator delete(void* p) noexcept
{
  deallocate(p, 1);
}
void operator delete(void* p, std::size_t) noexcept
{
  deallocate(p, 1);
}
void operator delete(void* p, std::align_val_t alignment) noexcept
{
  deallocate(p, static_cast<std::size_t>(alignment));
}
void operator delete(void* p, std::size_t, std::align_val_t alignment) noexcept
{
  deallocate(p, static_cast<std::size_t>(alignment));
}

namespace support {

std::size_t heap_in_use() noexcept
{
  return in_use;
}

heap_limit::heap_limit(std::size_t calls, std::size_t refusals, reach r) noexcept
{
  refused = false;
  includes_asio = r == reach::asio_too;
  calls_left = calls;
  refusals_left = refusals;
}
heap_limit::~heap_limit()
{
  calls_left = unlimited;
}
bool heap_limit::was_reached() const noexcept
{
  return refused;
}

}  // namespace support
