// L2 engine: the shards of a wheel, made when threads need them.
#pragma once

#include <asio_wheel/wheel_options.hpp>

#include "../base/locks.hpp"
#include "../wheel/timing_wheel.hpp"
#include "shard.hpp"
#include "wheel_clock.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// The shards of a wheel. Each is made when a thread first needs it: those that none needs cost
/// neither memory nor a look.
class ASIO_WHEEL_LOCK shard_table {
public:
  /// Makes one, so that there is always one. Throws std::bad_alloc.
  shard_table(wheel_core& c, const wheel_options& options, const wheel_clock& clock);
  shard_table(const shard_table&) = delete;
  shard_table& operator=(const shard_table&) = delete;
  ~shard_table();

  /// Where this thread starts its waits. Without memory for a new shard, one that another thread
  /// uses.
  [[nodiscard]] shard& local() noexcept;

  /// A wait is about to be filed at `sh`, which is locked, by this thread, whose own shard that may
  /// not be.
  void note_start(const shard& sh) noexcept;

  /// Whether a thread has ever started a wait elsewhere than at its own shard. To be asked with the
  /// lock of a shard, and so told of all starts before the latest there.
  [[nodiscard]] bool has_strays() const noexcept
  {
    return has_strays_.load(std::memory_order_relaxed);
  }

  /// The one that was made last; shard::older leads to all others. Whoever makes one and then asks
  /// for a wake-up is seen by the pass, or sees it (driver.hpp).
  [[nodiscard]] shard* latest() const noexcept;

  [[nodiscard]] shard& operator[](std::size_t number) const noexcept;

  /// What is made from here on is closed already.
  void close() noexcept;

  // Lock all of them. None is made meanwhile.

  void lock() noexcept ASIO_WHEEL_ACQUIRE();
  void unlock() noexcept ASIO_WHEEL_RELEASE();

private:
  [[nodiscard, gnu::noinline, gnu::cold]] shard& make_or_share(std::size_t number) noexcept;
  shard& make(std::size_t number);

  wheel_core& core_;
  const wheel_geometry geometry_;
  const wheel_clock& clock_;

  /// What it leaves of a thread's number is that of the thread's shard, and of a negative one that
  /// of none.
  const std::ptrdiff_t mask_;

  std::atomic<bool> has_strays_{false};

  spin_lock making_;  ///< guards the following; taken before the shards' locks
  bool closed_ ASIO_WHEEL_GUARDED_BY(making_) = false;
  std::atomic<shard*> latest_{nullptr};
  std::array<std::atomic<shard*>, max_shards> of_number_{};
};

}  // namespace asio_wheel::detail
