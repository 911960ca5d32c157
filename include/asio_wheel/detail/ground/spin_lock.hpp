// L0 ground: the lock of a shard.
#pragma once

#include <atomic>
#include <thread>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace asio_wheel::detail {

/// A one-byte lock for critical sections of some tens of nanoseconds.
///
/// Taking it is one atomic exchange and releasing it a plain store, half of what a mutex pays.
/// A thread that finds it taken spins briefly and then yields its processor at every look, so
/// that an owner which lost its own processor gets it back. Meets the Lockable requirements.
class spin_lock {
public:
  [[nodiscard]] bool try_lock() noexcept
  {
    return !taken_.exchange(true, std::memory_order_acquire);
  }

  void lock() noexcept
  {
    if (!try_lock()) lock_contended();
  }

  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

private:
  [[gnu::noinline, gnu::cold]] void lock_contended() noexcept
  {
    constexpr int spins = 64;
    do {
      // Look before the next exchange: a read leaves the owner's cache line alone.
      for (int i = 0; taken_.load(std::memory_order_relaxed); ++i) {
        if (i < spins)
          pause();
        else
          std::this_thread::yield();
      }
    } while (!try_lock());
  }

  static void pause() noexcept
  {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#endif
  }

  std::atomic<bool> taken_{false};
};

}  // namespace asio_wheel::detail
