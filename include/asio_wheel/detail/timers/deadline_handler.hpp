// L3 timers: what an operation with a deadline completes.
#pragma once

#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>

#include <cstdint>
#include <utility>

namespace asio_wheel::detail {

/// What the operation proper completes: the owner of the state. It has the user's handler's
/// executor and allocator, and a cancellation slot of its own.
template <class Operation>
class deadline_handler {
public:
  using wrapped_handler = typename Operation::handler_type;
  using cancellation_slot_type = embedded_slot;

  explicit deadline_handler(Operation& op) noexcept : op_(reinterpret_cast<std::uintptr_t>(&op)) {}
  /// A moved-from handler still points to the state, as a failing initiation asks it for its
  /// allocator. The initiating function keeps the state until then.
  deadline_handler(deadline_handler&& other) noexcept : op_(other.op_) { other.op_ |= moved_from; }
  deadline_handler& operator=(deadline_handler&&) = delete;
  ~deadline_handler()
  {
    if (is_owner()) op().abandon();
  }

  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept
  {
    return cancellation_slot_type(op().signal());
  }

  [[nodiscard]] const wrapped_handler& inner() const noexcept { return op().handler(); }

  template <class... Args>
  void operator()(Args&&... args)
  {
    Operation& state = op();
    op_ |= moved_from;
    state.complete(std::forward<Args>(args)...);
  }

private:
  static constexpr std::uintptr_t moved_from = 1;

  [[nodiscard]] bool is_owner() const noexcept { return (op_ & moved_from) == 0; }
  [[nodiscard]] Operation& op() const noexcept
  {
    return *reinterpret_cast<Operation*>(op_ & ~moved_from);
  }

  /// The state's address; the lowest bit is set if this was moved from. A separate flag would cost
  /// two more instructions for each of Asio's moves, up to five.
  std::uintptr_t op_;
};

}  // namespace asio_wheel::detail
