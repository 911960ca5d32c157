// L3 timers: connections without a network, for tests.
#pragma once

#include <asio_wheel/detail/base/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/timers/default_token.hpp>
#include <asio_wheel/detail/timers/simulated_end.hpp>
#include <asio_wheel/simulated_link.hpp>
#include <asio_wheel/use_wheel.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// One end of a connection in memory, which can be used like a socket. Its bytes travel in the
/// wheel's time: under a virtual_time an hour of traffic takes milliseconds.
///
///     auto [client, server] = simulated_pair(wheel, {.latency = 20ms});
///     async_read(server, buffer, timeout_after(5s, handler));
///     client.stall();  // the server hears nothing more, and times out
///
/// Ends of a connection may be on different executors and contexts. What is on the way is waits on
/// the wheel that the connection was made with. Each pending operation is a wait for
/// time_point::max() on the wheel of its stream's context. So all of them count in `pending()` and
/// for `max_pending`, and `cancel_all()` ends the operations. A stream may be destroyed with its
/// context, and the two contexts in either order; when the wheel's context is gone, nothing arrives
/// any more.
///
/// A write takes what there is room for when it starts, as a socket does. A read takes what there
/// is when its handler begins. At the end of the wheel's memory the connection fails with
/// `no_memory`.
///
/// Under a virtual_time all is deterministic if one thread runs the contexts.
///
/// Thread safety: as a socket. One thread or strand at a time uses a stream; that of the other end
/// may run at the same time.
template <std::convertible_to<asio::any_io_executor> Executor = asio::any_io_executor>
class basic_simulated_stream {
public:
  using executor_type = Executor;                    ///< of handlers without one of their own
  using lowest_layer_type = basic_simulated_stream;  ///< for asio::ssl::stream

  /// The same for another executor.
  template <class Other>
  struct rebind_executor {
    using other = basic_simulated_stream<Other>;  ///< a stream of `Other`
  };

  /// A stream without a connection.
  explicit basic_simulated_stream(const executor_type& ex) : executor_(ex) {}
  /// The same.
  template <execution_context_type Context>
    requires std::constructible_from<Executor, typename Context::executor_type>
  explicit basic_simulated_stream(Context& context) : executor_(context.get_executor()) {}

  /// @cond
  basic_simulated_stream(const executor_type& ex, detail::simulated_end end)
    : executor_(ex),
      end_(std::move(end))
  {}
  /// @endcond

  /// Takes over the connection and its pending operations. The other has none afterwards.
  basic_simulated_stream(basic_simulated_stream&& other)
    : executor_(other.executor_),
      end_(std::exchange(other.end_, {}))
  {}
  /// The same. Closes what is open here.
  basic_simulated_stream& operator=(basic_simulated_stream&& other)
  {
    if (this == &other) return *this;
    end_.close();
    executor_ = other.executor_;
    end_ = std::exchange(other.end_, {});
    return *this;
  }
  /// The same from a stream of another executor, which is converted.
  template <class Other>
    requires(!std::same_as<Other, Executor> && std::constructible_from<Executor, const Other&>)
  explicit basic_simulated_stream(basic_simulated_stream<Other>&& other)
    : executor_(other.executor_),
      end_(std::exchange(other.end_, {}))
  {}

  /// Closes the stream.
  ~basic_simulated_stream() { end_.close(); }

  /// The executor of handlers that have none of their own.
  [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

  /// For asio::ssl::stream.
  [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
  /// The same.
  [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return *this; }

  /// Returns true if there is a connection that was not closed here. One that was reset is open.
  [[nodiscard]] bool is_open() const noexcept { return end_.is_open(); }

  /// How many bytes have arrived and were not read.
  [[nodiscard]] std::size_t available() const noexcept { return end_.available(); }

  /// Ends pending operations with operation_aborted, other than writes that have sent something.
  void cancel() noexcept { end_.cancel(); }
  /// The same; `ec` is cleared.
  void cancel(error_code& ec) noexcept
  {
    ec.clear();
    end_.cancel();
  }

  /// Ends pending operations with operation_aborted, and the stream. The peer gets what was
  /// written, and then the end of stream. What it sends from then on is answered by a reset, when
  /// it has arrived. What was not read is lost, and nobody is told of that.
  void close() noexcept { end_.close(); }
  /// The same; `ec` is cleared.
  void close(error_code& ec) noexcept
  {
    ec.clear();
    end_.close();
  }

  /// Ends one direction or both, as for a socket: the peer reads the end of stream behind what was
  /// written, and writes fail with broken_pipe; reads find the end of stream once they have taken
  /// what has arrived.
  /// Errors: bad_descriptor, not_connected.
  void shutdown(asio::socket_base::shutdown_type what, error_code& ec) noexcept
  {
    end_.shutdown(what, ec);
  }
  /// The same. Exceptions: system_error.
  void shutdown(asio::socket_base::shutdown_type what)
  {
    error_code ec;
    end_.shutdown(what, ec);
    if (ec) throw system_error(ec, "shutdown");
  }

  /// Reads some bytes.
  ///
  /// @param buffers  a mutable buffer sequence, of which up to 16 are used.
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
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
      initiation<asio::mutable_buffer>{this}, token, buffers);
  }

  /// Writes some bytes; they have left when it completes. All else as async_read_some(), with
  /// broken_pipe in the place of eof.
  template <class Buffers, asio::completion_token_for<void(error_code, std::size_t)> Token =
                             detail::default_token_for<executor_type>>
  auto async_write_some(const Buffers& buffers, Token&& token = {})
  {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
      initiation<asio::const_buffer>{this}, token, buffers);
  }

  /// Lets a fault happen now. Without a connection these do nothing.
  void inject(simulated_fault fault) noexcept { end_.inject(fault); }
  /// The same after a time. The fault is a wait, which ends with the connection.
  /// Exceptions: std::bad_alloc.
  void inject_after(detail::any_delay delay, simulated_fault fault)
  {
    end_.inject_after(delay, fault);
  }
  /// The same behind the next `n` bytes of this end: when the last of them has arrived, and before
  /// the next one does. Exceptions: std::bad_alloc.
  void inject_after_bytes(std::size_t n, simulated_fault fault)
  {
    end_.inject_after_bytes(n, fault);
  }

  void stall() noexcept { inject(simulated_fault::stall); }    ///< simulated_fault::stall
  void resume() noexcept { inject(simulated_fault::resume); }  ///< simulated_fault::resume
  void reset() noexcept { inject(simulated_fault::reset); }    ///< simulated_fault::reset
  /// simulated_fault::chunk
  void chunk(std::size_t n) noexcept { inject({simulated_fault::chunk, n}); }
  /// simulated_fault::drop behind the next `n` bytes. Exceptions: std::bad_alloc.
  void drop_after(std::size_t n) { inject_after_bytes(n, simulated_fault::drop); }

private:
  template <std::convertible_to<asio::any_io_executor>>
  friend class basic_simulated_stream;

  template <class Buffer>
  struct initiation {
    using executor_type = Executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return self->executor_; }

    template <class Handler, class Buffers>
    void operator()(Handler&& handler, const Buffers& buffers) const
    {
      using parts = detail::simulated_buffers<Buffer>;
      const auto op =
        self->end_.prepare(self->executor_, std::forward<Handler>(handler),
                           [buffers](detail::simulated_operation& o, const error_code& ec) {
                             return detail::simulated_end::finish(o, ec, parts(buffers));
                           });
      detail::simulated_end::start(*op, parts(buffers));
    }

    basic_simulated_stream* self;
  };

  executor_type executor_;
  detail::simulated_end end_;
};

/// A simulated stream of any executor.
using simulated_stream = basic_simulated_stream<>;

/// Two streams that are connected, on the wheel's executor.
/// Exceptions: std::invalid_argument that names the first bad value of the link and its range;
///   std::bad_alloc.
[[nodiscard]] inline std::pair<simulated_stream, simulated_stream> simulated_pair(
  wheel_timer_service& wheel, const simulated_link& link = {})
{
  auto [first, second] = detail::simulated_end::connect(wheel, link);
  return {simulated_stream(wheel.get_executor(), std::move(first)),
          simulated_stream(wheel.get_executor(), std::move(second))};
}

/// The same on two executors.
template <class First, class Second>
[[nodiscard]] auto simulated_pair(wheel_timer_service& wheel, const simulated_link& link,
                                  const First& first_executor, const Second& second_executor)
{
  auto [first, second] = detail::simulated_end::connect(wheel, link);
  return std::pair(basic_simulated_stream<First>(first_executor, std::move(first)),
                   basic_simulated_stream<Second>(second_executor, std::move(second)));
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
  using executor_type = Executor;                        ///< that of the accepted streams, too
  using stream_type = basic_simulated_stream<Executor>;  ///< what is accepted

  /// An acceptor that is open.
  ///
  /// @param place  the wheel of the connections: see basic_wheel_timer.
  explicit basic_simulated_acceptor(const wheel_place<Executor>& place)
    : wheel_(&place.wheel),
      executor_(place.executor),
      line_(detail::simulated_end::connect(place.wheel, {.send_buffer = std::size_t{1} << 30U}))
  {}

  /// Takes over the connections; no accept may be pending. The other is closed.
  basic_simulated_acceptor(basic_simulated_acceptor&&) = default;
  basic_simulated_acceptor& operator=(basic_simulated_acceptor&&) = delete;

  /// Closes the acceptor.
  ~basic_simulated_acceptor() { close(); }

  /// The executor of handlers that have none of their own.
  [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

  /// Returns true unless it was closed.
  [[nodiscard]] bool is_open() const noexcept { return line_.second.is_open(); }

  /// Ends pending accepts with operation_aborted.
  void cancel() noexcept { line_.second.cancel(); }

  /// The same, and resets the connections that were not accepted.
  void close() noexcept
  {
    line_.second.close();
    line_.first.close();
  }

  /// A connection to this acceptor. It stands at once, and may be accepted later.
  ///
  /// @param link  of the connection.
  /// @param ex  the executor of the client's end, the acceptor's by default.
  /// Exceptions: system_error with connection_refused if the acceptor is closed;
  ///   std::invalid_argument as of simulated_pair(); std::bad_alloc.
  template <class ClientExecutor = Executor>
  [[nodiscard]] auto connect(const simulated_link& link, const ClientExecutor& ex)
  {
    auto [client, server] = detail::simulated_end::connect(*wheel_, link);
    basic_simulated_stream<ClientExecutor> stream(ex, std::move(client));
    if (line_.first.bring(server)) return stream;
    server.close();
    throw system_error(asio::error::connection_refused, "connect");
  }
  /// The same.
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
    return asio::async_initiate<Token, void(error_code, stream_type)>(initiate_accept{this}, token);
  }

private:
  struct initiate_accept {
    using executor_type = Executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return self->executor_; }

    template <class Handler>
    void operator()(Handler&& handler) const
    {
      const auto accept = [ex = self->executor_](detail::simulated_operation& o, error_code ec) {
        detail::simulated_end end;
        const error_code result = detail::simulated_end::accept(o, ec, end);
        return std::tuple(result, stream_type(ex, std::move(end)));
      };
      const auto op =
        self->line_.second.prepare(self->executor_, std::forward<Handler>(handler), accept);
      char byte{};
      const asio::mutable_buffer buffer(&byte, 1);
      detail::simulated_end::start(*op, std::span(&buffer, 1));
    }

    basic_simulated_acceptor* self;
  };

  wheel_timer_service* wheel_;
  executor_type executor_;
  // The ends of new connections travel over one that has room for many.
  std::pair<detail::simulated_end, detail::simulated_end> line_;
};

/// An acceptor of any executor.
using simulated_acceptor = basic_simulated_acceptor<>;

}  // namespace asio_wheel
