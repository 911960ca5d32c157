// L2 engine: a lock on a shard, and what to do after it is released.
#pragma once

#include "shard.hpp"

#include <cstddef>
#include <mutex>

namespace asio_wheel::detail {

/// Holds a shard's lock. After it has released the lock, it does what the transitions have left to
/// do: it posts deliveries, and tells the driver which wake-up is not needed any more.
class ASIO_WHEEL_SCOPED_LOCK shard_lock {
public:
  explicit shard_lock(shard& sh) noexcept ASIO_WHEEL_ACQUIRE(sh);
  shard_lock(shard& sh, std::adopt_lock_t) noexcept ASIO_WHEEL_REQUIRES(sh);
  shard_lock(const shard_lock&) = delete;
  shard_lock& operator=(const shard_lock&) = delete;
  ~shard_lock() ASIO_WHEEL_RELEASE();

  [[nodiscard]] shard& at() const noexcept ASIO_WHEEL_RETURNS(at_) ASIO_WHEEL_ASSERTS(at_)
  {
    return at_;
  }

  // As the shard's functions.

  std::size_t cancel(wait_op& op) noexcept;
  std::size_t cancel(timer_wait_list& waits, bool is_local) noexcept;
  std::size_t cancel_one(timer_wait_list& waits) noexcept;
  std::size_t cancel_all() noexcept;
  void file_due(wait_op& op) noexcept;

  /// The shard, for functions that end a wait in another way and leave it to be delivered.
  [[nodiscard]] shard& unfinished() noexcept ASIO_WHEEL_RETURNS(at_) ASIO_WHEEL_ASSERTS(at_);

  /// Destroys a wait that was not filed, after unlocking. At most one wait for each lock.
  void destroy(wait_op& op) noexcept;

private:
  std::size_t count(std::size_t cancelled) noexcept;
  [[gnu::noinline]] static void finish(shard& sh, wait_op* destroyed) noexcept
    ASIO_WHEEL_RELEASE(sh);

  shard& at_;
  bool unfinished_ = false;  ///< something is left to do
  wait_op* destroyed_ = nullptr;
};

}  // namespace asio_wheel::detail
