// L3 roof: any asynchronous operation, timed out when it takes too long.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/detail/roof/deadline_token.hpp>

namespace asio_wheel {

/// Cancels an operation that is not complete after `delay`, as cancel_after does, and tells this
/// from every other cancellation: the operation completes with asio::error::timed_out.
///
///     co_await socket.async_read_some(buffer, timeout_after(5s));
///
/// `timeout_after([wheel,] delay [, type] [, token])`
///
/// Only operation_aborted is changed to timed_out, and only if this deadline was the first thing
/// to cancel the operation. A success, another error and an abort of another cause stay what they
/// are. All else is as with cancel_after.
///
/// Signature: the operation's, which must have an error_code first; others do not compile.
inline constexpr detail::deadline_adapter<detail::duration, detail::deadline_report::timed_out>
  timeout_after{};

/// The same at a point in time.
///
/// `timeout_at([wheel,] deadline [, type] [, token])`
inline constexpr detail::deadline_adapter<detail::time_point, detail::deadline_report::timed_out>
  timeout_at{};

}  // namespace asio_wheel
