// L2 service: asks the system for huge pages.
#include <asio_wheel/detail/service/huge_pages.hpp>

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace asio_wheel::detail {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

void prefer_huge_pages([[maybe_unused]] void* p, [[maybe_unused]] std::size_t size) noexcept
{
#if defined(__linux__)
  madvise(p, size, MADV_HUGEPAGE);
#endif
}

class resource final : public std::pmr::memory_resource {
  static std::align_val_t aligned(std::size_t size, std::size_t alignment) noexcept
  {
    return std::align_val_t{size < huge_page ? alignment : std::max(alignment, huge_page)};
  }

  void* do_allocate(std::size_t size, std::size_t alignment) override
  {
    void* const p = ::operator new(size, aligned(size, alignment));
    if (size >= huge_page) prefer_huge_pages(p, size);
    return p;
  }

  void do_deallocate(void* p, std::size_t size, std::size_t alignment) override
  {
    ::operator delete(p, aligned(size, alignment));
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

std::pmr::memory_resource& huge_page_resource() noexcept
{
  // Never destroyed: a wheel in a static context outlives other statics.
  static resource& instance = *new resource;
  return instance;
}

}  // namespace asio_wheel::detail
