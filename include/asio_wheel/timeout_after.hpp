// L3 timers: any asynchronous operation, timed out when it takes too long.
#pragma once

#include <asio_wheel/detail/base/requirements.hpp>

#include <asio_wheel/detail/timers/deadline_token.hpp>

namespace asio_wheel {

/// Cancels an operation that is not complete after `delay`, as cancel_after does, and tells this
/// from every other cancellation: the operation completes with asio::error::timed_out.
///
///     co_await socket.async_read_some(buffer, timeout_after(5s));
///     co_await asio::co_spawn(ex, request(), timeout_after(5s));
///
/// `timeout_after([wheel or timer,] delay [, type] [, token])`
///
/// Only operation_aborted is changed to timed_out, and only if this deadline came while the
/// operation was going on. A success, another error, and an abort before the deadline stay what
/// they are. So does a cancellation by the handler's slot that comes first, even in the same tick,
/// if the operation listens to it. Once the deadline has come, every abort is reported as
/// timed_out, even if the operation ignored the deadline's cancellation and was aborted later for
/// another cause. All else is as with cancel_after.
///
/// Of an operation that completes with an exception_ptr, as co_spawn does, it is a
/// system_error with operation_aborted that becomes one with timed_out, and so does
/// what `a || b` throws when both sides were aborted. A coroutine that caught the cancellation, and
/// returned or threw something else, ends with that: its result counts. It hears the deadline as a
/// cancellation of `type`, and passes on none but terminal ones unless it has called
/// reset_cancellation_state(): leave the type as it is. A coroutine that waits for nothing that can
/// be cancelled is not cut short.
///
/// A channel's operation says channel_cancelled rather than operation_aborted, so it ends with
/// that.
///
/// Signature: the operation's, which must have an error_code or an exception_ptr first; others, a
///   parallel group's for one, do not compile. Put the deadline on each operation of the group
///   then, or on a coroutine that awaits it.
inline constexpr detail::deadline_adapter<detail::duration, detail::deadline_report::timed_out>
  timeout_after{};

/// The same at a point in time.
///
/// `timeout_at([wheel or timer,] deadline [, type] [, token])`
inline constexpr detail::deadline_adapter<detail::time_point, detail::deadline_report::timed_out>
  timeout_at{};

}  // namespace asio_wheel
