// L2 service: memory for functions that are posted again and again.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>

namespace asio_wheel::detail {

/// Room for a few functions on their way through an executor; any more, or a larger one, come
/// from operator new.
class task_memory {
public:
  task_memory() = default;
  task_memory(const task_memory&) = delete;
  task_memory& operator=(const task_memory&) = delete;

  [[nodiscard]] void* allocate(std::size_t size)
  {
    for (block& b : blocks_) {
      if (size <= sizeof(b.bytes) && !b.taken.exchange(true, std::memory_order_acquire))
        return b.bytes;
    }
    return ::operator new(size);
  }

  void deallocate(void* p) noexcept
  {
    for (block& b : blocks_) {
      if (p == b.bytes) return b.taken.store(false, std::memory_order_release);
    }
    ::operator delete(p);
  }

private:
  struct block {
    alignas(std::max_align_t) std::byte bytes[256];
    std::atomic<bool> taken{false};
  };
  block blocks_[6];
};

/// Allocates from a task_memory, which must outlive the function.
template <class T>
class task_allocator {
public:
  using value_type = T;

  explicit task_allocator(task_memory& memory) noexcept : memory_(&memory) {}
  template <class U>
  task_allocator(const task_allocator<U>& other) noexcept : memory_(other.memory_)
  {}

  [[nodiscard]] T* allocate(std::size_t n)
  {
    return static_cast<T*>(memory_->allocate(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t) noexcept { memory_->deallocate(p); }

  template <class U>
  bool operator==(const task_allocator<U>& other) const noexcept
  {
    return memory_ == other.memory_;
  }

private:
  template <class>
  friend class task_allocator;

  task_memory* memory_;
};

}  // namespace asio_wheel::detail
