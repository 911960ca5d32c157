// L3 timers: any asynchronous operation, given up when it takes too long, even if it does not
// listen.
#pragma once

#include <asio_wheel/detail/base/requirements.hpp>

#include <asio_wheel/detail/timers/abandonable_handler.hpp>
#include <asio_wheel/detail/timers/deadline_token.hpp>

namespace asio_wheel {

/// Calls the handler no later than at the deadline: with asio::error::timed_out then, **whether or
/// not the operation listens** to its cancellation.
///
///     auto endpoints = co_await resolver.async_resolve(host, port, abandon_after(200ms));
///
/// `abandon_after([wheel or timer,] delay [, type] [, token])`
///
/// At the deadline the operation is cancelled, as by timeout_after. If it ends at once, that is
/// all: it completes with timed_out, or with its result. If it goes on after some rounds through
/// the handler's executor, it is **abandoned**: its handler is called with timed_out and with
/// results that are made by default, and the operation is left to itself. Its result is destroyed
/// when and where it comes. wheel_stats::abandoned counts the operations that were abandoned and
/// have not ended yet.
///
/// An abandoned operation goes on after its handler was called, and so after what the handler has
/// destroyed. **So it must not use what belongs to its caller**: neither a buffer nor an object.
///
/// Safe are
/// - `resolver.async_resolve`, which owns its query. It is the case that everybody has:
///   `getaddrinfo` cannot be interrupted.
/// - waits of timers, `signal_set.async_wait`, `socket.async_wait` and `acceptor.async_wait`: they
///   use no memory of the caller, and listen anyway.
/// - `co_spawn` of a coroutine that owns its data: parameters by value, its own sockets and
/// buffers.
///
/// Unsafe are
/// - `async_read`, `async_write`, `async_receive` and the like, which use the caller's buffer.
/// - `async_accept(socket, token)` and `async_connect(socket, endpoints, token)`, which use the
///   caller's socket.
/// - a `co_spawn`ed lambda with captures, or with references as parameters: they are gone.
/// - whatever uses a member of an object that its handler destroys.
///
/// Memory: the operation's state is not from the handler's allocator, which may be gone before it.
/// It stays until the operation ends, with a copy of the handler's executor, but without the
/// handler. No work is kept on behalf of the handler. What Asio itself counts for an operation
/// keeps run() going: that of async_resolve does until it ends.
/// Signature: the operation's, which must have an error_code or an exception_ptr first, and further
///   results that can be made by default. Of several signatures, an abandoned operation has the
///   first.
/// Errors: as of timeout_after. wheel.cancel_all() and a wheel that refuses the deadline abandon
///   the operation, too, if it does not listen: with operation_aborted and
///   wheel_errc::too_many_pending.
/// Executor: the handler is called on its associated executor, or else the operation's, or the
///   wheel's. If the wheel's context or the executor's goes before the deadline, nothing is
///   abandoned.
/// Cancellation: what comes by the handler's slot is passed on, until the handler is called. It
/// does
///   not abandon the operation.
/// All else is as with timeout_after.
inline constexpr detail::deadline_adapter<detail::duration, detail::deadline_report::abandoned>
  abandon_after{};

/// The same at a point in time.
///
/// `abandon_at([wheel or timer,] deadline [, type] [, token])`
inline constexpr detail::deadline_adapter<detail::time_point, detail::deadline_report::abandoned>
  abandon_at{};

}  // namespace asio_wheel
