// L2 service: a function that is posted to the context while there is something for it to do.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/gate.hpp>
#include <asio_wheel/detail/service/native_executor.hpp>
#include <asio_wheel/detail/service/task_memory.hpp>

#include <atomic>
#include <shared_mutex>
#include <utility>

namespace asio_wheel::detail {

/// Sees to it that as long as there are waits to be taken, a function that takes them is on its way
/// through the context's executor, or running and not inside of a handler.
///
/// The function takes one wait at a time. Before it calls the handler it asks whether there are
/// more, and if no other function is on its way, posts one. So whatever the handler does, block or
/// throw, the next idle thread of the context goes on with the waits behind it.
///
/// What is `posted` is guarded by the lock of whoever keeps the waits.
class delivery {
public:
  /// How many handlers one function calls, so that other work of the context gets its turn.
  static constexpr int length = 64;

  /// There are waits to be taken. Whether post() is to be called, once the lock is released.
  [[nodiscard]] bool request() noexcept
  {
    const bool was_posted = posted_.load(std::memory_order_relaxed);
    posted_.store(true, std::memory_order_relaxed);
    return !was_posted;
  }

  /// The function has been called, or could not be posted.
  void set_arrived() noexcept { posted_.store(false, std::memory_order_relaxed); }

  /// Whether the function is on its way, or is about to be. May be asked without the lock.
  [[nodiscard]] bool is_requested() const noexcept
  {
    return posted_.load(std::memory_order_relaxed);
  }

  /// Posts `f`. False if the executor, one that makes its own memory for a function, had none: the
  /// waits stay, and go with the next request.
  template <class Function>
  [[nodiscard]] bool post(const native_executor& native, Function f) noexcept
  {
    const std::shared_lock inside(gate_, std::try_to_lock);
    try {
      if (inside) native.post(asio::bind_allocator(task_allocator(&memory_), std::move(f)));
      return true;
    } catch (...) {
      return false;
    }
  }

  /// The context is going away: nothing is posted any more.
  void close() noexcept { gate_.close(); }

private:
  std::atomic<bool> posted_{false};
  gate gate_;
  task_memory memory_;
};

}  // namespace asio_wheel::detail
