// L3 roof: what wheel_watchdog and heartbeat have in common.
#pragma once

#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/lazy_waits.hpp>
#include <asio_wheel/service/wait_handler.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// `Waits`, which are lazy_waits, on an executor: what can be done with any such object.
template <class Waits, class Executor>
class alive_object {
public:
  using executor_type = Executor;  ///< that of handlers without one of their own

  /// The executor of handlers that have none of their own.
  [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

  /// Ends all pending operations with operation_aborted. Returns how many. Thread-safe.
  std::size_t cancel() noexcept { return waits_.cancel(); }

  /// @cond
protected:
  template <class... Args>
  explicit alive_object(const wheel_place<Executor>& place, const Args&... args)
    : waits_(place.wheel.shards(), args...),
      executor_(place.executor),
      is_native_(is_native(executor_, place.wheel.shards().executor()))
  {}

  // Copies the executor: an object that was moved from can still be used.
  alive_object(alive_object&& other) noexcept
    : waits_(std::move(other.waits_)),
      executor_(other.executor_),
      is_native_(other.is_native_)
  {}
  alive_object& operator=(alive_object&& other) noexcept
  {
    waits_ = std::move(other.waits_);
    executor_ = other.executor_;
    is_native_ = other.is_native_;
    return *this;
  }
  ~alive_object() = default;

  class initiate_wait {
  public:
    using executor_type = Executor;

    explicit initiate_wait(alive_object& object) noexcept : object_(&object) {}
    [[nodiscard]] executor_type get_executor() const noexcept { return object_->get_executor(); }

    template <class Handler>
    void operator()(Handler&& handler) const
    {
      alive_object& object = *object_;
      std::decay_t<Handler> h(std::forward<Handler>(handler));
      launch_wait<timer_wait_op>(h, object.waits_.shards().executor(), object.executor_,
                                 object.is_native_,
                                 [&](timer_wait_op& op) { object.waits_.start(op); });
    }

  private:
    alive_object* object_;
  };

  Waits waits_;
  /// @endcond

private:
  Executor executor_;
  bool is_native_;  ///< the executor is the wheel's own
};

}  // namespace asio_wheel
