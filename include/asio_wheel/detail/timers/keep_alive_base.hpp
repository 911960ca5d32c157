// L3 timers: what wheel_watchdog and heartbeat have in common.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/initiate_wait.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>
#include <asio_wheel/detail/timers/deadline_token.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// What wheel_watchdog and heartbeat have in common: a `State`, derived from guarding_state, on an
/// executor.
template <class State, class Executor>
class keep_alive_base {
public:
  using executor_type = Executor;  ///< the default executor of handlers

  /// The default executor of handlers.
  [[nodiscard]] const executor_type& get_executor() const noexcept
  {
    return executor_.get(state_.context_executor());
  }

  /// Ends all pending operations with operation_aborted. Returns how many. Leaves guarded
  /// operations alone. Thread-safe.
  std::size_t cancel() noexcept { return state_.cancel(); }

  /// Sets what a guarded operation reports in place of timed_out. So one deadline can be told from
  /// another. Holds for running operations, too. A move takes the error along.
  ///
  /// @param ec  an error.
  /// Exceptions: std::bad_alloc.
  void set_error(const error_code& ec) { state_.guard()->set_error(ec); }

  /// Ties an operation to this object. If the watchdog expires, or the heartbeat's peer is lost,
  /// while the operation runs, the operation is cancelled and completes with
  /// asio::error::timed_out.
  ///
  ///     co_await async_read(socket, buffer, dog.guard());
  ///     async_write(socket, buffer, dog.guard([](error_code ec, std::size_t n) {}));
  ///     socket.async_read_some(buffer, asio::deferred) | dog.guard();
  ///
  /// Any number of operations may be guarded at a time, and a sign of life extends them all.
  /// Starting or ending an operation files nothing in the wheel: all share one wait, as long as any
  /// runs. Operations, watchdog and contexts may go in any order.
  ///
  /// An operation that completes first, or in spite of the cancellation, keeps its result. An
  /// operation that starts after the time has passed is cancelled at once, as if posted. A move
  /// takes the guarded operations along. When this object is destroyed or assigned to, its
  /// operations go on unguarded, so a session may destroy its socket and its watchdog in any order.
  /// While the watchdog exists, a socket must stay in place until its operations have completed, as
  /// with all of Asio's per-operation cancellation. Closing the socket ends its operations.
  ///
  /// Without a token, the operation gets its executor's default token, or asio::deferred.
  ///
  /// @param type  of the cancellation. Not all operations support all types.
  /// Signature: the operation's. It must begin with an error_code or a std::exception_ptr; others
  ///   do not compile.
  /// Errors: the operation's. If the guard ended the operation, operation_aborted becomes
  ///   timed_out. If the wheel rejected the wait, it becomes wheel_errc::too_many_pending.
  ///   wheel.cancel_all() also cancels guarded operations, with operation_aborted.
  /// Executor: the handler runs where the operation calls it. The cancellation is dispatched to the
  ///   handler's associated executor, or else to the operation's, or the wheel's.
  /// Cancellation: a signal through the handler's slot is passed on unchanged.
  /// Thread safety: guard() like touch(); the operation as without a guard.
  /// Exceptions: std::bad_alloc from guard() and from the initiation. The initiation also throws
  ///   what the operation's initiation throws. Then nothing has started.
  [[nodiscard]] auto guard(asio::cancellation_type type = asio::cancellation_type::terminal)
  {
    return partial_guard_token{state_.guard(), type};
  }
  /// As above, with a token. Its cancellation is terminal.
  ///
  /// @param token  any completion token; may have a guard or a deadline itself.
  template <class Token>
    requires(!std::convertible_to<Token, asio::cancellation_type>)
  [[nodiscard]] auto guard(Token&& token)
  {
    return guard(asio::cancellation_type::terminal, std::forward<Token>(token));
  }
  /// As above, with a type of cancellation and a token.
  template <class Token>
  [[nodiscard]] auto guard(asio::cancellation_type type, Token&& token)
  {
    return guard_token<std::decay_t<Token>>{std::forward<Token>(token), state_.guard(), type};
  }

  /// @cond
  [[nodiscard]] guard_ptr guard_of_stream() { return state_.guard(); }

protected:
  template <class... Args>
  explicit keep_alive_base(const wheel_place<Executor>& place, const Args&... args)
    : state_(core_of(place.wheel), args...),
      executor_(place.executor, state_.context_executor())
  {}

  // Copies the executor, so that a moved-from object can still be used.
  keep_alive_base(keep_alive_base&& other) noexcept
    : state_(std::move(other.state_)),
      executor_(other.executor_)
  {}
  keep_alive_base& operator=(keep_alive_base&& other) noexcept
  {
    state_ = std::move(other.state_);
    executor_ = other.executor_;
    return *this;
  }
  /// From an object of another executor. Converts the executor.
  template <class Other>
  explicit keep_alive_base(keep_alive_base<State, Other>&& other)
    : keep_alive_base(std::move(other.state_),
                      {other.get_executor(), other.state_.context_executor()})
  {}
  ~keep_alive_base() = default;

  using initiation = initiate_wait<lazy_wait_op, State, Executor>;
  [[nodiscard]] initiation initiate() noexcept { return {&state_, &executor_}; }

  State state_;
  /// @endcond

private:
  template <class, class>
  friend class keep_alive_base;

  /// Takes a finished executor, since making one may throw, and then takes over the state.
  keep_alive_base(State&& state, const timer_executor<Executor>& ex)
    : state_(std::move(state)),
      executor_(ex)
  {}

  using partial_guard_token = partial_deadline_token<guarded_by, deadline_report::timed_out>;
  template <class Token>
  using guard_token = deadline_token<Token, guarded_by, deadline_report::timed_out>;

  timer_executor<Executor> executor_;
};

}  // namespace asio_wheel::detail
