// L3 roof: what wheel_watchdog and heartbeat have in common.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/roof/deadline_token.hpp>
#include <asio_wheel/detail/service/deadline_wait.hpp>
#include <asio_wheel/detail/service/initiate_wait.hpp>
#include <asio_wheel/detail/service/timer_executor.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
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

  /// Ends all pending operations with operation_aborted. Returns how many. Guarded operations are
  /// not among them, and go on. Thread-safe.
  std::size_t cancel() noexcept { return state_.cancel(); }

  /// Ties an operation to this object: if the time comes while the operation runs, it is cancelled
  /// and completes with asio::error::timed_out. For a watchdog, that is when it expires; for a
  /// heartbeat, when its peer is lost.
  ///
  ///     co_await async_read(socket, buffer, dog.guard());
  ///     async_write(socket, buffer, dog.guard([](error_code ec, std::size_t n) {}));
  ///     socket.async_read_some(buffer, asio::deferred) | dog.guard();
  ///
  /// Any number of operations may be guarded at a time, and a sign of life puts all of them off. To
  /// start or end one files nothing in the wheel: all of them share one wait, which is there while
  /// they run. The handler refers to nothing but its own: operations, watchdog and contexts may go
  /// in any order.
  ///
  /// An operation that completes first, or in spite of the cancellation, keeps its result. One that
  /// is started when the time is over is cancelled at once, as if posted. With a move, the guarded
  /// operations go along. When this object is destroyed or assigned to, they go on, and nobody
  /// cancels them any more: so a session may be destroyed with its socket and its watchdog, in any
  /// order. While the watchdog is there, a socket has to stay where it is until its operations have
  /// completed, as with all of Asio's per-operation cancellation; to close it ends them.
  ///
  /// `guard([type] [, token])`
  ///
  /// @param type   of the cancellation; `terminal` by default. Not all operations support all.
  /// @param token  any completion token; by default the one of the operation's executor, or
  ///               asio::deferred. May have a guard or a deadline itself.
  /// Signature: the operation's, which must have an error_code first; others do not compile.
  /// Errors: the operation's, but for operation_aborted, which becomes timed_out if this cut it
  ///   short, or wheel_errc::too_many_pending if the wheel refused the wait. wheel.cancel_all()
  ///   cancels guarded operations, too, with operation_aborted.
  /// Executor: the handler runs where the operation calls it. The cancellation is dispatched to the
  ///   handler's associated executor, or else to the operation's, or the wheel's.
  /// Cancellation: what comes by the handler's slot is passed on unchanged.
  /// Thread safety: guard() as touch(); the operation as ever.
  /// Exceptions: std::bad_alloc from guard(); the initiation throws that, too, and what the
  ///   operation's throws. Nothing is started then.
  [[nodiscard]] auto guard(asio::cancellation_type type = asio::cancellation_type::terminal)
  {
    return partial_guard_token{{state_.guard(), type, nullptr}};
  }
  template <class Token>
    requires(!std::convertible_to<Token, asio::cancellation_type>)
  [[nodiscard]] auto guard(Token&& token)
  {
    return guard(asio::cancellation_type::terminal, std::forward<Token>(token));
  }
  template <class Token>
  [[nodiscard]] auto guard(asio::cancellation_type type, Token&& token)
  {
    return guard_token<std::decay_t<Token>>{std::forward<Token>(token),
                                            {state_.guard(), type, nullptr}};
  }

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
  using partial_guard_token = partial_deadline_token<guard_ptr, deadline_report::timed_out>;
  template <class Token>
  using guard_token = deadline_token<Token, guard_ptr, deadline_report::timed_out>;

  timer_executor<Executor> executor_;
};

}  // namespace asio_wheel::detail
