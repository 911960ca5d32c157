// L2 service: memory for functions that are posted again and again.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory_resource>
#include <new>

namespace asio_wheel::detail {

/// Room for a few functions on their way through an executor; any more, or a larger one, come
/// from operator new. No such function must outlive it.
class task_memory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t size, std::size_t) override
  {
    for (block& b : blocks_) {
      if (size <= sizeof(b.bytes) && !b.taken.exchange(true, std::memory_order_acquire))
        return b.bytes;
    }
    return ::operator new(size);
  }

  void do_deallocate(void* p, std::size_t, std::size_t) override
  {
    for (block& b : blocks_) {
      if (p == b.bytes) return b.taken.store(false, std::memory_order_release);
    }
    ::operator delete(p);
  }

  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override
  {
    return this == &other;
  }

  struct block {
    alignas(std::max_align_t) std::byte bytes[256];
    std::atomic<bool> taken{false};
  };
  block blocks_[6];
};

using task_allocator = std::pmr::polymorphic_allocator<std::byte>;

}  // namespace asio_wheel::detail
