// L2 engine: memory for waits and their kin.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// The unit of recycled blocks, and their alignment: a cache line.
inline constexpr std::size_t op_line = 64;
inline constexpr std::size_t most_recycled_lines = 16;

/// A block of 1 to `most_recycled_lines` cache lines. Throws std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT void* allocate_recycled_op(std::size_t lines);

/// Frees a recycled block, in any thread.
ASIO_WHEEL_EXPORT void deallocate_recycled_op(void* p, std::size_t lines) noexcept;

/// Replaces std::allocator for waits, one at a time. Recycles their memory, unless they are large
/// or over-aligned.
template <class T>
class op_allocator {
public:
  using value_type = T;

  op_allocator() = default;
  template <class U>
  op_allocator(const std::allocator<U>&) noexcept
  {}

  [[nodiscard]] T* allocate(std::size_t = 1)
  {
    if constexpr (is_recycled)
      return static_cast<T*>(allocate_recycled_op(lines));
    else
      return static_cast<T*>(::operator new(sizeof(T), alignment));
  }
  void deallocate(void* p, std::size_t = 1) noexcept
  {
    if constexpr (is_recycled)
      deallocate_recycled_op(p, lines);
    else
      ::operator delete(p, alignment);
  }

private:
  static constexpr std::align_val_t alignment{alignof(T)};
  static constexpr std::size_t lines = (sizeof(T) + op_line - 1) / op_line;
  static constexpr bool is_recycled = lines <= most_recycled_lines && alignof(T) <= op_line;
};

/// Base of a class `T` whose objects get memory like waits.
template <class T>
struct recycled {
  static void* operator new(std::size_t) { return op_allocator<T>().allocate(); }
  static void operator delete(void* p) noexcept { op_allocator<T>().deallocate(p); }
};

/// The allocator of a `T` for a handler with `Allocator`.
template <class Allocator, class T>
struct op_allocator_for {
  using type = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
};
template <class U, class T>
struct op_allocator_for<std::allocator<U>, T> {
  using type = op_allocator<T>;
};

/// Destroys a `T` from a handler's allocator, and frees its memory.
template <class T, class Handler>
struct op_deleter {
  using allocator_type = typename op_allocator_for<asio::associated_allocator_t<Handler>, T>::type;
  using traits = std::allocator_traits<allocator_type>;

  [[no_unique_address]] allocator_type allocator;

  void operator()(T* op) noexcept
  {
    op->~T();
    traits::deallocate(allocator, op, 1);
  }
};

template <class T, class Handler>
using op_ptr = std::unique_ptr<T, op_deleter<T, Handler>>;

/// Makes `T(handler, args...)` in memory from the handler's allocator.
template <class T, class H, class... Args>
[[nodiscard]] auto make_op(H&& handler, Args&&... args)
{
  using deleter = op_deleter<T, std::decay_t<H>>;
  typename deleter::allocator_type allocator(asio::get_associated_allocator(handler));
  T* const memory = deleter::traits::allocate(allocator, 1);
  try {
    ::new (static_cast<void*>(memory)) T(std::forward<H>(handler), std::forward<Args>(args)...);
  } catch (...) {
    deleter::traits::deallocate(allocator, memory, 1);
    throw;
  }
  return op_ptr<T, std::decay_t<H>>(memory, {std::move(allocator)});
}

/// Destroys what make_op() has made, frees its memory, and returns the handler. The call of the
/// handler may need the memory for the next operation. The handler may own the allocator's memory,
/// so it must go last.
template <class T, class Handler>
[[nodiscard]] Handler take_handler(T* op, Handler& handler)
{
  using deleter = op_deleter<T, Handler>;
  typename deleter::allocator_type allocator(asio::get_associated_allocator(handler));
  const op_ptr<T, Handler> owner(op, {std::move(allocator)});
  return std::move(handler);
}

}  // namespace asio_wheel::detail
