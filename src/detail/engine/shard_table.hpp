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

namespace asio_wheel::detail {

/// The shards of a wheel. A shard is made when a thread first needs it: an unused shard costs
/// neither memory nor time.
class ASIO_WHEEL_LOCK shard_table {
public:
  /// Makes a shard, so that there is always one. Throws std::bad_alloc.
  shard_table(wheel_core& c, const wheel_options& options, const wheel_clock& clock);
  shard_table(const shard_table&) = delete;
  shard_table& operator=(const shard_table&) = delete;
  ~shard_table();

  /// The shard where this thread starts its waits; another thread's shard if there is no memory for
  /// a new one.
  [[nodiscard]] shard& local() noexcept;

  /// This thread is about to file a wait at `sh`, maybe not its own shard. Requires the lock of
  /// `sh`.
  void note_start(const shard& sh) noexcept;

  /// Returns true if a thread has ever started a wait at another shard than its own. Under the lock
  /// of a shard, it counts all starts before the latest start there.
  [[nodiscard]] bool has_strays() const noexcept
  {
    return has_strays_.load(std::memory_order_relaxed);
  }

  struct iterator {
    shard* at;

    shard& operator*() const noexcept { return *at; }
    iterator& operator++() noexcept { return *this = {at->older}; }
    friend bool operator==(iterator, iterator) noexcept = default;
  };

  /// All shards, the latest first. If a thread makes a shard and then requests a wake-up, either
  /// the pass sees the shard, or the thread sees the pass (driver.hpp).
  [[nodiscard]] iterator begin() const noexcept { return {latest_}; }
  [[nodiscard]] static iterator end() noexcept { return {nullptr}; }

  [[nodiscard]] shard& operator[](std::size_t number) const noexcept;

  /// Shards made from here on are closed already.
  void close() noexcept;

  // These lock all shards. No shard is made meanwhile.

  void lock() noexcept ASIO_WHEEL_ACQUIRE();
  void unlock() noexcept ASIO_WHEEL_RELEASE();

private:
  [[nodiscard, gnu::noinline, gnu::cold]] shard& make_or_share(std::size_t number) noexcept;
  shard& make(std::size_t number);

  wheel_core& core_;
  const wheel_geometry geometry_;
  const wheel_clock& clock_;

  /// A thread's number & mask_ is its shard's number; a negative number stays negative, for no
  /// shard.
  const std::ptrdiff_t mask_;

  std::atomic<bool> has_strays_{false};

  spin_lock making_;  ///< guards the members below; taken before the shards' locks
  bool closed_ ASIO_WHEEL_GUARDED_BY(making_) = false;
  std::atomic<shard*> latest_{nullptr};
  std::array<std::atomic<shard*>, max_shards> of_number_{};
};

}  // namespace asio_wheel::detail
