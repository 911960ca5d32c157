// L3 timers: connections without a network, for tests.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/wheel_place.hpp>
#include <asio_wheel/wheel_timer.hpp>

// clang-format off
#include ASIO_WHEEL_ASIO(buffer.hpp)
#include ASIO_WHEEL_ASIO(cancellation_state.hpp)
#include ASIO_WHEEL_ASIO(compose.hpp)
#include ASIO_WHEEL_ASIO(socket_base.hpp)
// clang-format on

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// How bytes travel between the two ends of a simulated connection, the same both ways.
///
/// Bytes are sent in segments of up to 1,460. They arrive in order: a late segment holds up the
/// segments behind it.
struct simulated_link {
  detail::any_delay latency{};       ///< from the moment a byte has left to its arrival
  detail::any_delay jitter{};        ///< each segment's latency grows by a random part of this
  std::size_t bytes_per_second = 0;  ///< how fast bytes leave the send buffer; 0: at once

  /// How many bytes an end may have sent before its peer has read them; at least 1. A write waits
  /// for room until the peer reads.
  std::size_t send_buffer = 65536;

  /// The seed of all that is random. Equal seeds and equal calls at equal times give equal orders
  /// and times.
  std::uint64_t seed = 1;

  /// The share of segments that are lost, 0 to 1. A lost segment arrives 200 ms and two latencies
  /// later, as if sent again once.
  double loss = 0;
};

/// What happens to the bytes that one end of a simulated connection sends.
struct simulated_fault {
  /// The kinds of faults.
  enum kind_type {
    stall,       ///< the bytes stay on the way
    resume,      ///< stalled bytes go on
    reset,       ///< pending and later operations of both ends fail with connection_reset; unread
                 ///< bytes are lost
    half_close,  ///< an end of stream follows them
    drop,        ///< nothing arrives any more, in either direction, and nobody is told
    chunk,       ///< no read or write of this end moves more than `bytes`; 0: no limit any more
  };

  /// Converts from the kind. `n` is for `chunk`.
  constexpr simulated_fault(kind_type k, std::size_t n = 0) noexcept : kind(k), bytes(n) {}

  kind_type kind;     ///< what happens
  std::size_t bytes;  ///< of a chunk
};

namespace detail {
struct simulated_connection;  // both ends, and what is on the way
struct simulated_operation;
}  // namespace detail

/// One end of a connection, or none: what simulated streams of all executors have in common.
class ASIO_WHEEL_EXPORT simulated_end {
public:
  /// What shutdown() takes, by the names that sockets have.
  using shutdown_type = asio::socket_base::shutdown_type;
  static constexpr shutdown_type shutdown_receive = asio::socket_base::shutdown_receive;  ///< reads
  static constexpr shutdown_type shutdown_send = asio::socket_base::shutdown_send;  ///< writes
  static constexpr shutdown_type shutdown_both = asio::socket_base::shutdown_both;  ///< both

  /// Returns true if there is a connection that was not closed here. A connection that was reset is
  /// open.
  [[nodiscard]] bool is_open() const noexcept;

  /// How many bytes have arrived unread.
  [[nodiscard]] std::size_t available() const noexcept;

  /// Ends pending operations with operation_aborted, except writes that have sent something.
  void cancel() noexcept;
  /// As cancel(); clears `ec`.
  void cancel(error_code& ec) noexcept { cancel(), ec.clear(); }

  /// Ends pending operations with operation_aborted, and the stream. The peer gets what was
  /// written, and then the end of stream. A reset answers whatever arrives from the peer from then
  /// on. Unread bytes are lost, and nobody is told.
  void close() noexcept;
  /// As close(); clears `ec`.
  void close(error_code& ec) noexcept { close(), ec.clear(); }

  /// Ends one direction or both, as for a socket: after a send shutdown the peer reads the end of
  /// stream behind what was written, and writes here fail with broken_pipe; after a receive
  /// shutdown reads here find the end of stream behind what has arrived.
  /// Errors: bad_descriptor, not_connected.
  void shutdown(shutdown_type what, error_code& ec) noexcept;
  /// As above. Exceptions: system_error.
  void shutdown(shutdown_type what)
  {
    error_code ec;
    shutdown(what, ec);
    if (ec) throw system_error(ec, "shutdown");
  }

  /// Lets a fault happen now. Without a connection, this and all below do nothing.
  void inject(simulated_fault fault) noexcept;
  /// Lets a fault happen after a delay. The fault is a wait, which ends with the connection.
  /// Exceptions: std::bad_alloc.
  void inject_after(detail::any_delay delay, simulated_fault fault);
  /// Lets a fault happen behind the next `n` bytes that this end writes: when the last of these has
  /// arrived, and before the byte after it does. Exceptions: std::bad_alloc.
  void inject_after_bytes(std::size_t n, simulated_fault fault);

  void stall() noexcept { inject(simulated_fault::stall); }    ///< simulated_fault::stall
  void resume() noexcept { inject(simulated_fault::resume); }  ///< simulated_fault::resume
  void reset() noexcept { inject(simulated_fault::reset); }    ///< simulated_fault::reset
  /// simulated_fault::chunk
  void chunk(std::size_t n) noexcept { inject({simulated_fault::chunk, n}); }
  /// simulated_fault::drop behind the next `n` bytes. Exceptions: std::bad_alloc.
  void drop_after(std::size_t n) { inject_after_bytes(n, simulated_fault::drop); }

  /// @cond
  using operation = std::shared_ptr<detail::simulated_operation>;

  simulated_end() = default;
  simulated_end(simulated_end&&) = default;
  simulated_end& operator=(simulated_end other) noexcept
  {
    std::swap(connection_, other.connection_);
    std::swap(side_, other.side_);
    return *this;
  }
  ~simulated_end() { close(); }

  /// Two ends that are connected. Throws std::invalid_argument.
  [[nodiscard]] static std::pair<simulated_end, simulated_end> connect(wheel_timer_service& wheel,
                                                                       const simulated_link& link);

  /// An operation for up to `size` bytes, for start(). A handler without an executor is called
  /// through `ex`.
  [[nodiscard]] operation prepare(const asio::any_io_executor& ex, bool writes,
                                  std::size_t size) const;

  /// Starts an operation whose wait calls `self`, from asio::async_compose.
  template <class Self>
  static void start(Self& self, const operation op);

  /// The operation's wait has ended with `ec`: how does the operation end?
  [[nodiscard]] static error_code finish(detail::simulated_operation& begun,
                                         error_code ec) noexcept;

  /// Sends an end to accept. Returns false if the peer is closed.
  [[nodiscard]] bool send(simulated_end&& end);
  /// @endcond

private:
  simulated_end(std::shared_ptr<detail::simulated_connection> c, std::size_t side) noexcept
    : connection_(std::move(c)),
      side_(side)
  {}
  static void begin(detail::simulated_operation& prepared) noexcept;

  std::shared_ptr<detail::simulated_connection> connection_;
  std::size_t side_ = 0;  ///< 0 or 1
};

namespace detail {

/// A read, a write or an accept. A wait on the timer has its handler. The wait never ends by
/// itself: the connection cancels it when the operation can complete. So the wheel takes care of
/// the handler's executor, allocator, slot and outstanding work, and destroys the handler with its
/// context.
struct simulated_operation {
  wheel_timer timer;
  std::unique_ptr<char[]> bytes;  ///< to write, or storage for a read
  std::size_t size;               ///< of `bytes`, and then of what was written or read
  simulated_end accepted;         ///< by an acceptor
};

}  // namespace detail

/// @cond
template <class Self>
void simulated_end::start(Self& self, const operation op)
{
  const bool is_empty = op->size == 0;
  self.reset_cancellation_state(asio::enable_total_cancellation());
  op->timer.async_wait(std::move(self));
  if (is_empty)
    op->timer.cancel();  // as with a socket, it has nothing to wait for
  else
    begin(*op);
}
/// @endcond

/// One end of a connection in memory, which can be used like a socket. Its bytes travel in the
/// wheel's time: under a virtual_time an hour of traffic takes milliseconds.
///
///     auto [client, server] = simulated_pair(wheel, {.latency = 20ms});
///     async_read(server, buffer, timeout_after(5s, handler));
///     client.stall();  // the server hears nothing more, and times out
///
/// Ends of a connection may be on different executors and contexts. Bytes on the way are waits on
/// the wheel that the connection was made with. Each pending operation is a wait for
/// time_point::max() on the wheel of its stream's context. So all of these count in `pending()` and
/// for `max_pending`, and `cancel_all()` ends the operations. A stream may be destroyed with its
/// context, and the two contexts may go in either order. When the wheel's context is gone, nothing
/// arrives any more.
///
/// A write takes what there is room for when it starts, as with a socket. A read takes what has
/// arrived when its handler begins. If the wheel has no memory, the connection fails with
/// `no_memory`.
///
/// Under a virtual_time all is deterministic if one thread runs the contexts.
///
/// Thread safety: as a socket. One thread or strand at a time uses a stream; the two ends may run
/// at the same time.
template <std::convertible_to<asio::any_io_executor> Executor = asio::any_io_executor>
class basic_simulated_stream : public simulated_end {
public:
  using executor_type = Executor;                    ///< the default executor of handlers
  using lowest_layer_type = basic_simulated_stream;  ///< for asio::ssl::stream

  /// The stream type for another executor.
  template <class Other>
  struct rebind_executor {
    using other = basic_simulated_stream<Other>;  ///< a stream of `Other`
  };

  /// A stream without a connection.
  explicit basic_simulated_stream(const executor_type& ex) : executor_(ex) {}
  /// A stream without a connection, on the context's executor.
  template <execution_context_type Context>
    requires std::constructible_from<Executor, typename Context::executor_type>
  explicit basic_simulated_stream(Context& context) : executor_(context.get_executor()) {}

  /// Takes over the connection and its pending operations. The other stream has no connection then.
  basic_simulated_stream(basic_simulated_stream&& other)
    : basic_simulated_stream(other.executor_, std::move(other))
  {}
  /// Closes the connection here, then takes over.
  basic_simulated_stream& operator=(basic_simulated_stream&& other)
  {
    simulated_end::operator=(std::move(other));
    executor_ = other.executor_;
    return *this;
  }
  /// Takes over from a stream of another executor. Converts the executor.
  template <class Other>
    requires(!std::same_as<Other, Executor> && std::constructible_from<Executor, const Other&>)
  explicit(!std::convertible_to<const Other&, Executor>)
    basic_simulated_stream(basic_simulated_stream<Other>&& other)
    : basic_simulated_stream(Executor(other.get_executor()), std::move(other))
  {}

  /// Closes the stream.
  ~basic_simulated_stream() = default;

  /// @cond
  basic_simulated_stream(const executor_type& ex, simulated_end&& end)
    : simulated_end(std::move(end)),
      executor_(ex)
  {}
  /// @endcond

  /// The default executor of handlers.
  [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

  /// For asio::ssl::stream.
  [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
  /// For asio::ssl::stream.
  [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return *this; }

  /// Reads some bytes.
  ///
  /// @param buffers  a mutable buffer sequence.
  /// @param token  completion signature `void(error_code, std::size_t)`; the executor's default
  ///               token, or asio::deferred.
  /// Errors: eof; connection_reset; operation_aborted if cancelled; bad_descriptor if there is no
  ///   connection.
  /// Executor: the handler's associated executor, or the stream's.
  /// Cancellation: terminal, partial and total. Nothing was taken then.
  /// Exceptions: std::bad_alloc; nothing is started then.
  template <class Buffers, asio::completion_token_for<void(error_code, std::size_t)> Token =
                             detail::default_token_for<executor_type>>
  auto async_read_some(const Buffers& buffers, Token&& token = {})
  {
    return asio::async_compose<Token, void(error_code, std::size_t)>(
      [this, buffers, op = operation()](auto& self, error_code ec = {}) mutable {
        if (!op) return start(self, op = prepare(executor_, false, asio::buffer_size(buffers)));
        ec = finish(*op, ec);
        const std::size_t n = asio::buffer_copy(buffers, asio::buffer(op->bytes.get(), op->size));
        op.reset();
        self.complete(ec, n);
      },
      token, executor_);
  }

  /// Writes some bytes. They are in the send buffer when it completes. All else as
  /// async_read_some(), with broken_pipe in place of eof.
  template <class Buffers, asio::completion_token_for<void(error_code, std::size_t)> Token =
                             detail::default_token_for<executor_type>>
  auto async_write_some(const Buffers& buffers, Token&& token = {})
  {
    return asio::async_compose<Token, void(error_code, std::size_t)>(
      [this, buffers, op = operation()](auto& self, error_code ec = {}) mutable {
        if (!op) {
          op = prepare(executor_, true, asio::buffer_size(buffers));
          asio::buffer_copy(asio::buffer(op->bytes.get(), op->size), buffers);
          return start(self, op);
        }
        ec = finish(*op, ec);
        const std::size_t n = op->size;
        op.reset();
        self.complete(ec, n);
      },
      token, executor_);
  }

private:
  executor_type executor_;
};

/// A simulated stream of any executor.
using simulated_stream = basic_simulated_stream<>;

/// Two streams that are connected, on two executors.
/// Exceptions: std::invalid_argument, naming the first bad value of the link and its range;
///   std::bad_alloc.
template <class First, class Second>
[[nodiscard]] auto simulated_pair(wheel_timer_service& wheel, const simulated_link& link,
                                  const First& first_executor, const Second& second_executor)
{
  auto [first, second] = simulated_end::connect(wheel, link);
  return std::pair(basic_simulated_stream<First>(first_executor, std::move(first)),
                   basic_simulated_stream<Second>(second_executor, std::move(second)));
}

/// Two streams that are connected, on the wheel's executor.
[[nodiscard]] inline auto simulated_pair(wheel_timer_service& wheel,
                                         const simulated_link& link = {})
{
  return simulated_pair(wheel, link, wheel.get_executor(), wheel.get_executor());
}

/// What a server accepts simulated connections from.
///
///     simulated_acceptor acceptor(wheel);
///     simulated_stream client = acceptor.connect({.latency = 20ms});
///     simulated_stream session = co_await acceptor.async_accept();
///
/// Thread safety: as an acceptor; connect() may be called from any thread.
template <std::convertible_to<asio::any_io_executor> Executor = asio::any_io_executor>
class basic_simulated_acceptor {
public:
  using executor_type = Executor;                        ///< also the accepted streams' executor
  using stream_type = basic_simulated_stream<Executor>;  ///< what is accepted

  /// The acceptor type for another executor.
  template <class Other>
  struct rebind_executor {
    using other = basic_simulated_acceptor<Other>;  ///< an acceptor of `Other`
  };

  /// An acceptor that is open.
  ///
  /// @param place  the wheel of the connections: see basic_wheel_timer.
  explicit basic_simulated_acceptor(const wheel_place<Executor>& place)
    : wheel_(&place.wheel),
      executor_(place.executor),
      line_(simulated_end::connect(place.wheel, {}))
  {}

  /// Takes over the connections and the pending accepts. The other acceptor is closed then.
  basic_simulated_acceptor(basic_simulated_acceptor&& other)
    : wheel_(other.wheel_),
      executor_(other.executor_),
      line_(std::move(other.line_))
  {}
  /// Closes this acceptor, then takes over.
  basic_simulated_acceptor& operator=(basic_simulated_acceptor&& other)
  {
    wheel_ = other.wheel_;
    executor_ = other.executor_;
    line_ = std::move(other.line_);
    return *this;
  }
  /// Takes over from an acceptor of another executor, with its pending accepts. Converts the
  /// executor.
  template <class Other>
    requires(!std::same_as<Other, Executor> && std::constructible_from<Executor, const Other&>)
  basic_simulated_acceptor(basic_simulated_acceptor<Other>&& other)
    : wheel_(other.wheel_),
      executor_(other.executor_),
      line_(std::move(other.line_))
  {}

  /// The default executor of handlers.
  [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

  /// Returns true unless it was closed.
  [[nodiscard]] bool is_open() const noexcept { return line_.second.is_open(); }

  /// Ends pending accepts with operation_aborted.
  void cancel() noexcept { line_.second.cancel(); }

  /// As cancel(), and resets the connections that were not accepted.
  void close() noexcept { line_.second.close(), line_.first.close(); }

  /// A connection to this acceptor. It is connected at once, and may be accepted later.
  ///
  /// @param link  of the connection.
  /// @param ex  the executor of the client's end, the acceptor's by default.
  /// Exceptions: system_error with connection_refused if the acceptor is closed;
  ///   std::invalid_argument as of simulated_pair(); std::bad_alloc.
  template <class ClientExecutor = Executor>
  [[nodiscard]] auto connect(const simulated_link& link, const ClientExecutor& ex)
  {
    auto [client, server] = simulated_end::connect(*wheel_, link);
    if (!line_.first.send(std::move(server)))
      throw system_error(asio::error::connection_refused, "connect");
    return basic_simulated_stream<ClientExecutor>(ex, std::move(client));
  }
  /// A connection whose client end is on the acceptor's executor.
  [[nodiscard]] stream_type connect(const simulated_link& link = {})
  {
    return connect(link, executor_);
  }

  /// Accepts a connection. Completion signature `void(error_code, stream_type)`; errors:
  /// operation_aborted, bad_descriptor if it is closed; all else as of the stream's operations.
  template <asio::completion_token_for<void(error_code, stream_type)> Token =
              detail::default_token_for<executor_type>>
  auto async_accept(Token&& token = {})
  {
    return accept<Token>(executor_, token);
  }

  /// Accepts a connection whose end is on the executor `ex`, such as a strand of the session's own.
  /// The handler's default executor is the acceptor's. Completion signature
  /// `void(error_code, basic_simulated_stream<Other>)`.
  template <std::convertible_to<asio::any_io_executor> Other,
            asio::completion_token_for<void(error_code, basic_simulated_stream<Other>)> Token =
              detail::default_token_for<executor_type>>
  auto async_accept(const Other& ex, Token&& token = {})
  {
    return accept<Token>(ex, token);
  }
  /// As above, on the executor of a context.
  template <execution_context_type Context,
            asio::completion_token_for<
              void(error_code, basic_simulated_stream<typename Context::executor_type>)>
              Token = detail::default_token_for<executor_type>>
  auto async_accept(Context& context, Token&& token = {})
  {
    return accept<Token>(context.get_executor(), token);
  }

private:
  template <std::convertible_to<asio::any_io_executor> Other>
  friend class basic_simulated_acceptor;

  template <class Token, class Other>
  auto accept(const Other& session, std::remove_reference_t<Token>& token)
  {
    using accepted_type = basic_simulated_stream<Other>;
    return asio::async_compose<Token, void(error_code, accepted_type)>(
      [this, ex = executor_, session, op = simulated_end::operation()](auto& self,
                                                                       error_code ec = {}) mutable {
        if (!op) return simulated_end::start(self, op = line_.second.prepare(ex, false, 1));
        ec = simulated_end::finish(*op, ec);
        accepted_type accepted(session, std::move(op->accepted));
        op.reset();
        self.complete(ec, std::move(accepted));
      },
      token, executor_);
  }

  wheel_timer_service* wheel_;
  executor_type executor_;
  // The ends of new connections travel over this connection.
  std::pair<simulated_end, simulated_end> line_;
};

/// An acceptor of any executor.
using simulated_acceptor = basic_simulated_acceptor<>;

}  // namespace asio_wheel
