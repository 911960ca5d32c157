// L3 roof: any asynchronous operation, cancelled when it takes too long.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/detail/roof/deadline_token.hpp>

namespace asio_wheel {

/// Cancels an operation that is not complete after `delay`.
///
///     co_await socket.async_read_some(buffer, cancel_after(5s));
///     socket.async_read_some(buffer, cancel_after(5s, [](error_code ec, std::size_t n) {}));
///     socket.async_read_some(buffer, asio::deferred) | cancel_after(5s);
///
/// `cancel_after([wheel,] delay [, type] [, token])`
///
/// The operation then completes as its cancellation makes it, mostly with operation_aborted. If it
/// completes first, or in spite of the cancellation, its result is passed on as it is. The
/// deadline counts from the initiation and is part of the operation's state: there is one
/// allocation, by the handler's allocator, and no hop that the operation would not have by itself.
/// Only if the operation completes before its initiation has returned, or while it is being
/// cancelled by another thread, is its handler posted.
///
/// @param wheel  where the deadline is kept; by default the wheel of the operation's executor, made
///               if it is missing (see use_wheel). It must not be destroyed while another thread
///               completes the operation; if it goes earlier, the deadline goes with it.
/// @param delay  in nanoseconds; rounded up to the wheel's next tick. Zero or less: at once, as if
///               posted. duration::max(): never, at the cost of no slot.
/// @param type   of the cancellation; `terminal` by default. Not all operations support all.
/// @param token  any completion token; by default the one of the operation's executor, or
///               asio::deferred. May have a deadline itself.
/// Signature: the operation's. Any number of signatures and arguments.
/// Errors: the operation's. If it is cancelled because the wheel refused the deadline
///   (`wheel_options::max_pending`, or no memory), operation_aborted becomes
///   wheel_errc::too_many_pending, where the signature has an error_code first.
/// Executor: the handler runs where the operation calls it; the cancellation is dispatched to the
///   handler's associated executor, or else to the operation's, or the wheel's. As with all of
///   Asio, that has to be a strand if several threads run the context and the operation is a
///   composed one.
/// Cancellation: what comes by the handler's slot is passed on unchanged. wheel.cancel_all()
///   cancels the operation.
/// Thread safety: as the operation. Its completion, its deadline and a cancellation by the slot
///   may meet on different threads.
/// Exceptions: what the operation's initiation throws; std::bad_alloc, and what posting to the
///   wheel's context throws; std::logic_error if there is neither a wheel given nor an executor of
///   the operation or its handler to find one by. On older Asio, up to Boost 1.81 at least, the
///   executor is hidden by bind_executor, as_tuple and the like *outside* of the deadline; inside,
///   as in `cancel_after(5s, as_tuple(token))`, they are in no one's way. The operation is not
///   started then.
inline constexpr detail::deadline_adapter<detail::duration, detail::deadline_report::aborted>
  cancel_after{};

/// The same at a point in time. One that has passed: at once, as if posted. time_point::max():
/// never, at the cost of no slot.
///
/// `cancel_at([wheel,] deadline [, type] [, token])`
inline constexpr detail::deadline_adapter<detail::time_point, detail::deadline_report::aborted>
  cancel_at{};

}  // namespace asio_wheel
