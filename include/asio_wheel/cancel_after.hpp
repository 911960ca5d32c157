// L3 timers: cancels any asynchronous operation that takes too long.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/timers/deadline_token.hpp>

namespace asio_wheel {

/// Cancels an operation that is not complete after `delay`. Newer Asio has a function of this name,
/// with a steady_timer for each operation.
///
///     co_await socket.async_read_some(buffer, cancel_after(5s));
///     socket.async_read_some(buffer, cancel_after(5s, [](error_code ec, std::size_t n) {}));
///     socket.async_read_some(buffer, asio::deferred) | cancel_after(5s);
///
/// `cancel_after([wheel or timer,] delay [, type] [, token])`
///
/// A cancelled operation mostly completes with operation_aborted. An operation that completes
/// first, or in spite of the cancellation, keeps its result. The deadline counts from the
/// initiation and is part of the operation's state: it costs one allocation, from the handler's
/// allocator, and no additional hop. The handler is posted only if the operation completes before
/// its initiation returns, while another thread cancels it, or while a deadline that has come is on
/// its way to the handler's executor.
///
/// The handler of a wait may destroy the I/O object of an operation whose deadline comes next: the
/// aborted operation completes before the deadline would reach it. On a strand of a context with
/// several threads, the deadline waits for four ticks to let it. This does not hold for a function
/// that the program has posted itself, nor for another thread. If either destroys the object
/// between the deadline and its cancellation, the cancellation reaches an object that is gone, as
/// with a hand-made steady_timer. There, emit a cancellation and let the operation complete before
/// its object goes.
///
/// @param wheel  keeps the deadline; by default the wheel of the operation's executor, made if
///               there is none (see use_wheel). If it is destroyed earlier, the deadline goes with
///               it. A timer of this library, in the wheel's place, stands for its wheel. Its
///               expiry and its waits stay what they are. With a timer of another clock than
///               steady_clock, `deadline` is by the timer's clock and converted once.
/// @param delay  in nanoseconds; rounded up to the wheel's next tick. Zero or less: at once, as if
///               posted. duration::max(): never, and it takes no slot. A timeout_policy may take
///               its place.
/// @param type   of the cancellation; `terminal` by default. Not all operations support all.
/// @param token  any completion token, even with a deadline of its own; by default the token of the
///               operation's executor, or asio::deferred.
/// Signature: the operation's. Any number of signatures and arguments.
/// Errors: the operation's. If it is cancelled because the wheel refused the deadline
///   (`wheel_options::max_pending`, or no memory), operation_aborted becomes
///   wheel_errc::too_many_pending, where the signature has an error_code or an exception_ptr
///   first.
/// Executor: the handler runs where the operation calls it; the cancellation is dispatched to the
///   handler's associated executor, or else to the operation's, or the wheel's. As everywhere in
///   Asio, a composed operation needs a strand if several threads run the context.
/// Cancellation: a signal through the handler's slot is passed on unchanged. wheel.cancel_all()
///   cancels the operation, unless its deadline is never: then there is no wait.
///   bind_cancellation_slot belongs inside the deadline: outside it does not compile, as it would
///   hide the operation from the deadline.
/// Thread safety: as the operation. Its completion, its deadline and a signal through the slot may
///   meet on different threads.
/// Exceptions: what the operation's initiation and use_wheel() throw; std::bad_alloc;
///   std::logic_error if no wheel is given and neither the operation nor its handler has an
///   executor to find a wheel by. The operation is not started then. On older Asio, up to Boost
///   1.81 at least, bind_executor, as_tuple and the like hide the executor if they are *outside*
///   the deadline, but not inside, as in `cancel_after(5s, as_tuple(token))`.
inline constexpr detail::deadline_adapter<detail::duration, detail::deadline_report::aborted>
  cancel_after{};

/// As cancel_after, with a point in time in place of the delay. A point in the past: at once, as if
/// posted. time_point::max(): never, and it takes no slot.
///
/// `cancel_at([wheel or timer,] deadline [, type] [, token])`
inline constexpr detail::deadline_adapter<detail::time_point, detail::deadline_report::aborted>
  cancel_at{};

}  // namespace asio_wheel
