// L3 timers: gives up any asynchronous operation that takes too long, even if it does not listen.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/detail/timers/abandonable_handler.hpp>
#include <asio_wheel/detail/timers/deadline_token.hpp>

namespace asio_wheel {

/// Calls the handler at the deadline at the latest, with asio::error::timed_out, **even if the
/// operation does not listen** to its cancellation.
///
///     auto endpoints = co_await resolver.async_resolve(host, port, abandon_after(200ms));
///
/// `abandon_after([wheel or timer,] delay [, type] [, token])`; `delay` may be a timeout_policy.
///
/// The deadline cancels the operation, as with timeout_after. If the operation ends at once, it
/// completes with timed_out or with its result. If it still runs after some rounds through the
/// handler's executor, it is **abandoned**: its handler gets timed_out and default-constructed
/// results, and the operation goes on alone. Its result is destroyed when and where it arrives.
/// wheel_stats::abandoned counts the abandoned operations that still run.
///
/// An abandoned operation outlives its handler and whatever the handler destroys. **So it must not
/// use what belongs to its caller**, neither a buffer nor an object.
///
/// Safe are
/// - `resolver.async_resolve`: it owns its query. Everybody needs this case, as `getaddrinfo`
///   cannot be interrupted.
/// - waits of timers, `signal_set.async_wait`, `socket.async_wait` and `acceptor.async_wait`: they
///   use no memory of the caller, and listen anyway.
/// - `co_spawn` of a coroutine that owns its data: parameters by value, its own sockets and
///   buffers.
///
/// Unsafe are
/// - `async_read`, `async_write`, `async_receive` and the like, which use the caller's buffer.
/// - `async_accept(socket, token)` and `async_connect(socket, endpoints, token)`, which use the
///   caller's socket.
/// - a `co_spawn`ed lambda with captures or reference parameters: what they refer to is gone.
/// - whatever uses a member of an object that its handler destroys.
///
/// Memory: the operation's state does not come from the handler's allocator, as the allocator may
/// go first. The state stays until the operation ends, with a copy of the handler's executor but
/// without the handler. So the context of this executor must live until then. The state counts no
/// work for the handler. Work that Asio itself counts keeps the run() of that context going: for
/// async_resolve, until the operation ends.
/// Signature: the operation's. It must begin with an error_code or an exception_ptr, and its other
///   results must be default-constructible. With several signatures, an abandoned operation has the
///   first.
/// Errors: as with timeout_after. wheel.cancel_all() also abandons an operation that does not
///   listen, with operation_aborted, unless its deadline is never. So does a wheel that refuses the
///   deadline, with wheel_errc::too_many_pending.
/// Executor: the handler's associated executor, or else the operation's, or the wheel's. If the
///   wheel's or the executor's context goes before the deadline, nothing is abandoned.
/// Cancellation: a signal through the handler's slot is passed on until the handler is called. The
///   signal does not abandon the operation.
/// All else is as with timeout_after.
inline constexpr detail::deadline_adapter<detail::duration, detail::deadline_report::abandoned>
  abandon_after{};

/// As abandon_after, with a point in time in place of the delay.
///
/// `abandon_at([wheel or timer,] deadline [, type] [, token])`
inline constexpr detail::deadline_adapter<detail::time_point, detail::deadline_report::abandoned>
  abandon_at{};

}  // namespace asio_wheel
