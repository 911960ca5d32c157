// L0 ground: lets threads through until it is closed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace asio_wheel::detail {

/// Guards something that one thread takes away while others may be using it.
///
/// A user asks `enter()`, and calls `leave()` when it is done. `close()` turns away those who come
/// later and returns when nobody is inside.
class gate {
public:
  /// Whether the gate is open. If so, leave() is to be called.
  [[nodiscard]] bool enter() noexcept
  {
    if ((inside_.fetch_add(1, std::memory_order_acquire) & closed) == 0) return true;
    leave();
    return false;
  }

  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

  void close() noexcept
  {
    inside_.fetch_or(closed, std::memory_order_acquire);
    while (inside_.load(std::memory_order_acquire) != closed)
      std::this_thread::sleep_for(std::chrono::microseconds{20});
  }

private:
  static constexpr std::uint32_t closed = std::uint32_t{1} << 31;

  std::atomic<std::uint32_t> inside_{0};
};

}  // namespace asio_wheel::detail
