// L0 base: a lock for critical sections of tens of nanoseconds, and a gate that closes once.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace asio_wheel::detail {

/// A lock of one byte. Meets the Lockable requirements.
///
/// Locking is one atomic exchange and unlocking a plain store: half the cost of a mutex.
///
/// A thread that finds the lock taken leaves it alone for some pauses before it reads it again.
/// Each read takes the cache line away from the owner, and the owner mostly needs the line soon,
/// for its next critical section. The pauses are short, because critical sections are: rests of 10
/// us instead cost a chat server an eighth of its user time in one measurement (doc/decisions.md).
///
/// An owner that lost its processor gets it back, whatever the priorities. After some reads, a
/// waiting thread yields before each read, which is enough for an owner of equal priority. Later it
/// sleeps between reads, so the owner runs even if the waiting thread has a real-time priority. The
/// waiting thread notices the release when its sleep ends, at the latest.
class ASIO_WHEEL_LOCK spin_lock {
public:
  static constexpr std::chrono::microseconds shortest_sleep{50};
  static constexpr std::chrono::microseconds longest_sleep{1000};

  [[nodiscard]] bool try_lock() noexcept ASIO_WHEEL_TRY_ACQUIRE(true)
  {
    return !taken_.exchange(true, std::memory_order_acquire);
  }

  void lock() noexcept ASIO_WHEEL_ACQUIRE()
  {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }

  void unlock() noexcept ASIO_WHEEL_RELEASE() { taken_.store(false, std::memory_order_release); }

  /// Tells Clang's analysis that the caller has the lock.
  void assert_held() const noexcept ASIO_WHEEL_ASSERTS(this)
  {
    assert(taken_.load(std::memory_order_relaxed));
  }

private:
  [[gnu::noinline, gnu::cold]] void lock_contended() noexcept ASIO_WHEEL_ACQUIRE()
  {
    constexpr int spins = 16;
    constexpr int yields = 8;
    do {
      auto sleep = shortest_sleep;
      // A read disturbs the owner less than another exchange.
      for (int reads = 0; taken_.load(std::memory_order_relaxed); ++reads) {
        if (reads < spins) {
          leave_alone();
        } else if (reads < spins + yields) {
          std::this_thread::yield();
        } else {
          std::this_thread::sleep_for(sleep);
          sleep = std::min(2 * sleep, longest_sleep);
        }
      }
    } while (!try_lock());
  }

  static void leave_alone() noexcept
  {
    constexpr int pauses = 24;
    for (int i = 0; i < pauses; ++i) pause();
  }

  static void pause() noexcept
  {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ __volatile__("isb");
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }

  std::atomic<bool> taken_{false};
};

/// A std::lock_guard for Clang's analysis.
template <class Lock>
class ASIO_WHEEL_SCOPED_LOCK locked {
public:
  explicit locked(Lock& l) noexcept ASIO_WHEEL_ACQUIRE(l) : lock_(l) { l.lock(); }
  locked(Lock& l, std::adopt_lock_t) noexcept ASIO_WHEEL_REQUIRES(l) : lock_(l) {}
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
  ~locked() ASIO_WHEEL_RELEASE() { lock_.unlock(); }

private:
  Lock& lock_;
};

/// Guards something that one thread removes while others may use it.
///
/// A user locks it as `std::shared_lock inside(gate, std::try_to_lock)`, and tests `inside`.
/// `close()` refuses later users, and returns when nobody is inside but the calling thread.
class gate {
public:
  /// Enters. Returns false if the gate is closed.
  [[nodiscard]] bool try_lock_shared() noexcept
  {
    if ((inside_.fetch_add(1, std::memory_order_acquire) & closed) == 0) return true;
    unlock_shared();
    return false;
  }

  /// Leaves.
  void unlock_shared() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

  /// @param own  how often the calling thread is inside
  void close(std::uint32_t own = 0) noexcept
  {
    inside_.fetch_or(closed, std::memory_order_acquire);
    while (inside_.load(std::memory_order_acquire) > closed + own)
      std::this_thread::sleep_for(std::chrono::microseconds{20});
  }

private:
  static constexpr std::uint32_t closed = std::uint32_t{1} << 31;

  std::atomic<std::uint32_t> inside_{0};
};

}  // namespace asio_wheel::detail
