// L2 service: whether a context still takes functions, for threads that it does not run.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>

namespace asio_wheel::detail {

/// Belongs to a context, and closes when that is destroyed. Counted.
///
/// The deadline of an operation may be on the wheel of another context than the operation and its
/// handler. When the deadline comes, a thread of the wheel posts to the handler's executor. The
/// context of that may be destroyed at the same moment, which ends the operation, but an executor
/// must not be used from then on. So the thread posts only inside of the gate, and the destruction
/// of a context waits for those who are inside. Nothing else waits for them.
class context_gate;

ASIO_WHEEL_EXPORT void intrusive_ptr_add_ref(const context_gate* g) noexcept;
ASIO_WHEEL_EXPORT void intrusive_ptr_release(const context_gate* g) noexcept;

/// The gate of a context. Throws std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT intrusive_ptr<context_gate> gate_of(asio::execution_context& c);

/// Keeps a context while it lasts, if it is true.
class ASIO_WHEEL_EXPORT kept_context {
public:
  /// @param g  null: nothing has to be kept
  explicit kept_context(context_gate* g) noexcept : gate_(g), is_kept_(!g || enter()) {}
  kept_context(const kept_context&) = delete;
  kept_context& operator=(const kept_context&) = delete;
  ~kept_context()
  {
    if (gate_ && is_kept_) leave();
  }

  explicit operator bool() const noexcept { return is_kept_; }

private:
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;

  context_gate* const gate_;
  const bool is_kept_;
};

}  // namespace asio_wheel::detail
