// L0 ground: lets threads in until it is closed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace asio_wheel::detail {

/// Guards something that one thread takes away while others may use it.
///
/// A user locks it as `std::shared_lock inside(gate, std::try_to_lock)`, and asks whether it has.
/// `close()` refuses later users, and returns when nobody is inside.
class gate {
public:
  /// Enters. False if it is closed.
  [[nodiscard]] bool try_lock_shared() noexcept
  {
    if ((inside_.fetch_add(1, std::memory_order_acquire) & closed) == 0) return true;
    unlock_shared();
    return false;
  }

  /// Leaves.
  void unlock_shared() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

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
