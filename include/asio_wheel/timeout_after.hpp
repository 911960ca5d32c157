// L3 timers: times out any asynchronous operation that takes too long.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/timers/deadline_token.hpp>

namespace asio_wheel {

/// Cancels an operation that is not complete after `delay`, as cancel_after does, and reports it:
/// the operation completes with asio::error::timed_out.
///
///     co_await socket.async_read_some(buffer, timeout_after(5s));
///     co_await asio::co_spawn(ex, request(), timeout_after(5s));
///
/// `timeout_after([wheel or timer,] delay [, type] [, token])`; `delay` may be a timeout_policy.
///
/// Only operation_aborted becomes timed_out, and only if this deadline came while the operation was
/// running. A success, another error, and an abort before the deadline stay what they are. So does
/// a cancellation through the handler's slot that comes first, even in the same tick, if the
/// operation listens to it. Once the deadline has come, every abort is reported as timed_out, even
/// if the operation ignored the deadline's cancellation and was aborted later for another cause.
/// All else is as with cancel_after.
///
/// A coroutine that returns a value is awaited by use_awaitable if there is no token, also behind
/// `|`: write `co_spawn(ex, f(), asio::deferred) | timeout_after(5s, asio::deferred)` to keep it
/// deferred.
///
/// If an operation completes with an exception_ptr, as co_spawn does, a system_error with
/// operation_aborted becomes a system_error with timed_out. So does the exception of `a || b` when
/// both sides were aborted. If a coroutine catches the cancellation, and returns or throws
/// something else, its own result counts. A coroutine hears the deadline as a cancellation of
/// `type`. It passes on only terminal cancellations unless it has called
/// reset_cancellation_state(), so leave the type as it is. A coroutine that waits for nothing
/// cancellable runs on.
///
/// A channel's operation says channel_cancelled, not operation_aborted, so it ends with
/// channel_cancelled.
///
/// Signature: the operation's. It must begin with an error_code or an exception_ptr; others do not
///   compile, for example a parallel group's. Put the deadline on each operation of the group
///   instead, or on a coroutine that awaits the group.
inline constexpr detail::deadline_adapter<detail::duration, detail::deadline_report::timed_out>
  timeout_after{};

/// As timeout_after, with a point in time in place of the delay.
///
/// `timeout_at([wheel or timer,] deadline [, type] [, token])`
inline constexpr detail::deadline_adapter<detail::time_point, detail::deadline_report::timed_out>
  timeout_at{};

}  // namespace asio_wheel
