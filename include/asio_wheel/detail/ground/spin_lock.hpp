// L0 ground: the lock for critical sections of some tens of nanoseconds.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace asio_wheel::detail {

/// A lock of one byte. Meets the Lockable requirements.
///
/// Taking it is one atomic exchange and releasing it a plain store, half of what a mutex pays.
///
/// An owner that lost its processor gets it back, whatever the priorities. A waiting thread first
/// spins, which is enough for an owner that runs. Then it yields, which is enough for an owner of
/// its own priority. Then it sleeps between looks: the scheduler never prefers a sleeping thread,
/// so the owner runs even if the waiting one is of a real-time class and yields to no one else.
/// A waiting thread notices the release at the latest when its sleep ends.
class spin_lock {
public:
  static constexpr std::chrono::microseconds shortest_sleep{50};
  static constexpr std::chrono::microseconds longest_sleep{1000};

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
    constexpr int yields = 32;
    do {
      auto sleep = shortest_sleep;
      // Look before the next exchange: a read leaves the owner's cache line alone.
      for (int looks = 0; taken_.load(std::memory_order_relaxed);) {
        if (looks < spins) {
          pause();
          ++looks;
        } else if (looks < spins + yields) {
          std::this_thread::yield();
          ++looks;
        } else {
          std::this_thread::sleep_for(sleep);
          sleep = std::min(2 * sleep, longest_sleep);
        }
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
