// L3 roof: what wheel_watchdog and heartbeat have in common.
#pragma once

#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/lazy_waits.hpp>
#include <asio_wheel/service/wait_handler.hpp>
#include <asio_wheel/service/wheel_timer_service.hpp>
#include <asio_wheel/use_wheel.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// Where an object is made: a wheel, and the executor that calls its handlers. Converts from all
/// that a wheel_timer can be made on.
template <class Executor>
struct wheel_place {
  /// The wheel of the executor's context (see use_wheel).
  template <std::convertible_to<Executor> OtherExecutor>
  wheel_place(const OtherExecutor& ex) : wheel(use_wheel(ex)),
                                         executor(ex)
  {}
  template <execution_context_type Context>
  wheel_place(Context& context) : wheel(use_wheel(context)),
                                  executor(context.get_executor())
  {}
  wheel_place(wheel_timer_service& w) : wheel(w), executor(w.get_executor()) {}
  wheel_place(wheel_timer_service& w, const Executor& ex) : wheel(w), executor(ex) {}

  wheel_timer_service& wheel;
  Executor executor;
};

/// `Waits`, which are lazy_waits, on an executor.
template <class Waits, class Executor>
class alive_object {
public:
  using executor_type = Executor;

  [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

  /// Ends all pending operations with operation_aborted. Returns how many. Thread-safe.
  std::size_t cancel() noexcept { return waits_.cancel(); }

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

private:
  Executor executor_;
  bool is_native_;  ///< the executor is the wheel's own
};

}  // namespace asio_wheel
