// What an executor may do with a function that it is given, by a seed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

namespace support {

/// What an executor throws that has memory enough.
struct queue_is_full : std::runtime_error {
  queue_is_full() : std::runtime_error("the queue is full") {}
};

/// How many of 16 functions suffer that.
struct bad_habits {
  unsigned refuses = 0;  ///< throws std::bad_alloc
  unsigned throws = 0;   ///< throws something else
  unsigned delays = 0;   ///< takes the function after a while
  unsigned drops = 0;    ///< destroys the function
};

/// The same numbers in every run, though not for the same functions if there are several threads.
class whims {
public:
  whims(std::uint64_t seed, bad_habits habits) : habits_(habits), random_(seed) {}
  whims(const whims&) = delete;
  whims& operator=(const whims&) = delete;

  /// For an own_executor.
  [[nodiscard]] const std::function<bool()>& takes() const noexcept { return takes_; }

  /// From now on takes every function.
  void calm_down() noexcept { calm_ = true; }

private:
  bool decide()
  {
    if (calm_) return true;
    unsigned n = next();
    const auto falls_to = [&n](unsigned share) {
      const bool hit = n < share;
      n -= hit ? 0 : share;
      return hit;
    };
    if (falls_to(habits_.refuses)) throw std::bad_alloc();
    if (falls_to(habits_.throws)) throw queue_is_full();
    if (falls_to(habits_.delays)) std::this_thread::sleep_for(std::chrono::microseconds{300});
    return !falls_to(habits_.drops);
  }

  unsigned next()
  {
    const std::lock_guard lock(mutex_);
    return static_cast<unsigned>(random_() % 16);
  }

  const bad_habits habits_;
  std::atomic<bool> calm_{false};
  std::mutex mutex_;
  std::mt19937_64 random_;
  const std::function<bool()> takes_ = [this] { return decide(); };
};

}  // namespace support
