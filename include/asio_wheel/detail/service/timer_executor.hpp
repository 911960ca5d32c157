// L2 service: the executor of a timer, in as little room as it takes.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/service/op_memory.hpp>
#include <asio_wheel/detail/service/wait_handler.hpp>

namespace asio_wheel::detail {

/// An executor and whether it is the wheel's own, so that nothing need be dispatched to get there.
template <class Executor>
class timer_executor {
public:
  timer_executor(const Executor& ex, const asio::any_io_executor& native)
    : executor_(ex),
      is_native_(is_native(ex, native))
  {}

  [[nodiscard]] bool is_native_to_wheel() const noexcept { return is_native_; }
  [[nodiscard]] const Executor& get(const asio::any_io_executor&) const noexcept
  {
    return executor_;
  }

private:
  Executor executor_;
  bool is_native_;
};

/// An any_io_executor is half of what a steady_timer consists of. Nearly always it is the wheel's
/// own, and need not be kept; otherwise it is shared by the timers that are moved from one another.
template <>
class timer_executor<asio::any_io_executor> {
public:
  timer_executor(const asio::any_io_executor& ex, const asio::any_io_executor& native)
    : own_(ex == native ? nullptr : new shared(ex))
  {}

  [[nodiscard]] bool is_native_to_wheel() const noexcept { return !own_; }
  [[nodiscard]] const asio::any_io_executor& get(const asio::any_io_executor& native) const noexcept
  {
    return own_ ? own_->executor : native;
  }

private:
  struct shared : intrusive_ref_counter<shared>, recycled<shared> {
    explicit shared(const asio::any_io_executor& ex) : executor(ex) {}

    asio::any_io_executor executor;
  };

  intrusive_ptr<shared> own_;
};

}  // namespace asio_wheel::detail
