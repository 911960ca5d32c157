// L3 roof: memory for a wait in the object that waits.
#pragma once

#include <asio_wheel/detail/service/op_memory.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace asio_wheel::detail {

/// Room for a wait whose handler is a pointer.
struct wait_room {
  alignas(std::uint64_t) std::byte bytes[op_line];
};

/// The allocator of a handler that owns the object with the room, in which at most one wait is
/// pending at a time. What does not fit gets memory as usual: a wait that keeps work outstanding on
/// an executor, and its errand there. If there are only such waits, there need be no room.
template <class T>
class room_allocator {
public:
  using value_type = T;

  explicit room_allocator(wait_room* r) noexcept : room_(r) {}
  template <class U>
  room_allocator(const room_allocator<U>& other) noexcept : room_(other.room())
  {}

  [[nodiscard]] T* allocate(std::size_t = 1)
  {
    if constexpr (fits())
      return reinterpret_cast<T*>(room_->bytes);
    else
      return op_allocator<T>().allocate();
  }
  void deallocate([[maybe_unused]] T* p, std::size_t = 1) noexcept
  {
    if constexpr (!fits()) op_allocator<T>().deallocate(p);
  }

  [[nodiscard]] wait_room* room() const noexcept { return room_; }

  template <class U>
  friend bool operator==(const room_allocator& a, const room_allocator<U>& b) noexcept
  {
    return a.room() == b.room();
  }

private:
  [[nodiscard]] static constexpr bool fits() noexcept
  {
    return std::is_base_of_v<wait_op, T> && sizeof(T) <= sizeof(wait_room) &&
           alignof(T) <= alignof(wait_room);
  }

  wait_room* room_;
};

}  // namespace asio_wheel::detail
