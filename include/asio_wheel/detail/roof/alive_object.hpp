// L3 roof: what wheel_watchdog and heartbeat have in common.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/service/initiate_wait.hpp>
#include <asio_wheel/detail/service/timer_executor.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// `State`, which is a lazy_state, on an executor: what can be done with any such object.
template <class State, class Executor>
class alive_object {
public:
  using executor_type = Executor;  ///< that of handlers without one of their own

  /// The executor of handlers that have none of their own.
  [[nodiscard]] const executor_type& get_executor() const noexcept
  {
    return executor_.get(state_.core().executor());
  }

  /// Ends all pending operations with operation_aborted. Returns how many. Thread-safe.
  std::size_t cancel() noexcept { return state_.cancel(); }

  /// @cond
protected:
  template <class... Args>
  explicit alive_object(const wheel_place<Executor>& place, const Args&... args)
    : state_(core_of(place.wheel), args...),
      executor_(place.executor, state_.core().executor())
  {}

  // Copies the executor: an object that was moved from can still be used.
  alive_object(alive_object&& other) noexcept
    : state_(std::move(other.state_)),
      executor_(other.executor_)
  {}
  alive_object& operator=(alive_object&& other) noexcept
  {
    state_ = std::move(other.state_);
    executor_ = other.executor_;
    return *this;
  }
  ~alive_object() = default;

  using initiation = initiate_wait<lazy_wait_op, State, Executor>;
  [[nodiscard]] initiation initiate() noexcept { return {state_, &executor_}; }

  State state_;
  /// @endcond

private:
  timer_executor<Executor> executor_;
};

}  // namespace asio_wheel::detail
