// L2 service: the context's executor as the driver's strand is to see it.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/service/native_executor.hpp>
#include <asio_wheel/detail/service/task_memory.hpp>

#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// Posts to the context from memory that is set aside.
///
/// A strand that cannot have memory for its own function, behind those it was given, never runs
/// again. On this executor it always can, so that even a cancel in need of memory is seen through.
class posting_executor {
public:
  posting_executor(const native_executor& native, asio::execution_context& context,
                   task_memory& memory) noexcept
    : native_(&native),
      context_(&context),
      memory_(&memory)
  {}

  template <class Function>
  void execute(Function f) const
  {
    native_->post(asio::bind_allocator(query(asio::execution::allocator), std::move(f)));
  }

  [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept
  {
    return *context_;
  }
  template <class T>
  [[nodiscard]] task_allocator<std::byte> query(asio::execution::allocator_t<T>) const noexcept
  {
    return task_allocator<std::byte>(*memory_);
  }
  [[nodiscard]] static constexpr asio::execution::blocking_t query(
    asio::execution::blocking_t) noexcept
  {
    return asio::execution::blocking.never;
  }

  friend bool operator==(const posting_executor& a, const posting_executor& b) noexcept
  {
    return a.memory_ == b.memory_;
  }
  friend bool operator!=(const posting_executor& a, const posting_executor& b) noexcept
  {
    return !(a == b);
  }

private:
  const native_executor* native_;
  asio::execution_context* context_;
  task_memory* memory_;
};

}  // namespace asio_wheel::detail
