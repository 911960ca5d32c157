// L3 timers: a stream whose operations time out.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/timers/deadline_token.hpp>
#include <asio_wheel/detail/timers/stream_deadlines.hpp>
#include <asio_wheel/detail/timers/stream_types.hpp>
#include <asio_wheel/stream_limits.hpp>
#include <asio_wheel/timeout_policy.hpp>
#include <asio_wheel/use_wheel.hpp>

// clang-format off
#include ASIO_WHEEL_ASIO(append.hpp)
#include ASIO_WHEEL_ASIO(connect.hpp)
#include ASIO_WHEEL_ASIO(ip/tcp.hpp)
// clang-format on

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace asio_wheel {

namespace detail {
template <class State, class Executor>
class keep_alive_base;
}  // namespace detail

/// A stream with deadlines on the wheel: a drop-in for boost::beast::tcp_stream, over any layer
/// that reads and writes as Asio's AsyncStream.
///
///     asio_wheel::tcp_stream stream(co_await acceptor.async_accept(asio::use_awaitable));
///     stream.expires_after(30s);
///     co_await http::async_read(stream, buffer, request, asio::use_awaitable);
///
/// An expiry holds for all operations that start after it was set, until it is set again. It
/// cancels operations that are still running: they complete with asio::error::timed_out. An
/// operation that starts later does nothing, and completes with timed_out at once. While others are
/// running, or the handler of another is, it may start instead: it may succeed then, and is
/// cancelled at the wheel's next tick. Setting the expiry does not change running operations: each
/// keeps the expiry it started under. A connect counts as a write.
///
/// **After a timeout the stream is open.** beast::tcp_stream closes its socket. Here the owner
/// closes it, and may first send the peer a last message or read its address. Nothing else can
/// close the socket meanwhile. A read that timed out has lost nothing. A write that timed out may
/// have sent a part of its data, as any failed write.
///
/// An operation that completes first keeps its result, even if its handler is called after the
/// expiry. If that happens to one of several reads at a time, the handler of a later read may be
/// called before. Setting an expiry costs a clock reading and a store. Starting and ending an
/// operation mostly files nothing in the wheel: all operations of a stream share one wait.
///
/// @tparam NextLayer  as `asio::ip::tcp::socket`, a local socket or `beast::test::stream`. Members
///                    that it cannot support do not compile when they are used.
///
/// Thread safety: as a socket. If several threads run the context, use operations, their handlers
/// and all members on one strand.
template <class NextLayer>
class timed_stream : public detail::stream_types<NextLayer> {
public:
  /// The default executor of handlers.
  using executor_type = std::remove_cvref_t<decltype(std::declval<NextLayer&>().get_executor())>;
  using socket_type = NextLayer;          ///< what the stream reads from and writes to
  using duration = detail::duration;      ///< of the wheel's clock
  using time_point = detail::time_point;  ///< of the wheel's clock
  using lowest_layer_type = NextLayer;    ///< for asio::ssl::stream

  /// The stream type for another executor.
  template <class Executor>
  struct rebind_executor {
    /// a stream of `Executor`
    using other = timed_stream<typename NextLayer::template rebind_executor<Executor>::other>;
  };

  /// A stream without expiry and limits. Takes the arguments of the next layer's constructors: an
  /// executor, a context, or a socket to move in.
  template <class... Args>
    requires(sizeof...(Args) != 0 && std::constructible_from<NextLayer, Args...>)
  explicit timed_stream(Args&&... args) : socket_(std::forward<Args>(args)...) {}

  /// Takes over the socket and the deadlines; no operation may be pending. The other stream has a
  /// moved-from socket and no deadlines then.
  timed_stream(timed_stream&& other) = default;

  /// Closes what is open here, then takes over.
  timed_stream& operator=(timed_stream&& other) = default;

  /// Takes over a stream of another executor with its deadlines, as the move constructor does. For
  /// `use_awaitable.as_default_on(stream)`.
  template <class Other>
    requires(!std::same_as<Other, NextLayer> && std::constructible_from<NextLayer, Other>)
  explicit timed_stream(timed_stream<Other>&& other)
    : socket_(std::move(other.socket_)),
      deadlines_(std::move(other.deadlines_))
  {}

  /// Closes the socket. Pending operations complete with operation_aborted.
  ~timed_stream() = default;

  /// The executor of the socket.
  [[nodiscard]] executor_type get_executor() noexcept { return socket_.get_executor(); }

  /// The next layer, for what the stream itself does not offer. Operations started on the layer
  /// have no deadline.
  [[nodiscard]] socket_type& socket() noexcept { return socket_; }
  /// The next layer.
  [[nodiscard]] const socket_type& socket() const noexcept { return socket_; }

  /// For asio::ssl::stream.
  [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return socket_; }
  /// For asio::ssl::stream.
  [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return socket_; }

  /// Cancels what is pending, and gives the socket away. The expiry and the limits stay.
  [[nodiscard]] socket_type release_socket()
  {
    cancel();
    return std::move(socket_);
  }

  /// Sets the expiry to `delay` from now, for all operations that start from now on. Zero or less
  /// is at once; duration::max() is never.
  ///
  /// Exceptions: std::bad_alloc, the first time; what use_wheel() throws.
  void expires_after(detail::any_delay delay) { deadlines_.set_expiry(from_now(delay)); }

  /// Sets the expiry by a timeout_policy. Each operation that starts until another expiry is set
  /// counts in the policy's figures: it has used the time from this call to its end. If the expiry
  /// ends an operation, it reports the policy's error. If a limit of set_limits() ends it before
  /// the expiry, it reports timed_out and counts as met.
  ///
  ///     inline asio_wheel::timeout_policy header{"header", 5s};
  ///
  ///     stream.expires_after(header);
  ///
  /// @param policy  must outlive the operations that have it.
  /// Exceptions: as expires_after() with a delay.
  void expires_after(timeout_policy& policy)
  {
    static_cast<void>(core());
    deadlines_.set_expiry(policy);
  }

  /// Sets the expiry to a point in time. A point in the past: at once.
  void expires_at(detail::any_deadline deadline)
  {
    static_cast<void>(core());
    deadlines_.set_expiry(deadline);
  }

  /// Removes the expiry, for the operations that start from now on. The limits stay.
  void expires_never() noexcept { deadlines_.set_expiry(time_point::max()); }

  /// Limits the operations that start from now on, in addition to the expiry: the earliest deadline
  /// counts.
  ///
  ///     stream.set_limits({.read_idle = 60s, .write_stall = 10s, .total = 1h});
  ///
  /// @param limits  zero or less is at once. Each limit of a read or a write costs it a reading of
  ///                the clock.
  /// Exceptions: as expires_after().
  void set_limits(const stream_limits& limits)
  {
    static_cast<void>(core());
    deadlines_.set_limits(limits);
  }

  /// The cause of the latest timeout by a deadline of the stream: the expiry or one of the limits.
  [[nodiscard]] stream_timeout last_timeout() const noexcept { return deadlines_.last_timeout(); }

  /// The operations that start from now on feed a heartbeat or a watchdog: a read of any bytes
  /// counts as `received()` or `touch()`, a write of any bytes as `sent()`.
  ///
  ///     asio_wheel::heartbeat beat(context, {.interval = 30s, .max_missed = 2});
  ///     stream.feed(beat);
  ///
  /// A stream can feed any number of these. Each may be moved or destroyed at any time. A move of
  /// the stream takes them along. Blocking operations feed nothing.
  ///
  /// Exceptions: std::bad_alloc; what use_wheel() throws.
  template <class State, class Executor>
  void feed(detail::keep_alive_base<State, Executor>& heartbeat_or_watchdog)
  {
    static_cast<void>(core());
    deadlines_.feed(heartbeat_or_watchdog.guard_of_stream());
  }

  /// Feeds nothing from now on.
  void feed_nothing() noexcept { deadlines_.feed_nothing(); }

  /// Ends all pending operations with operation_aborted.
  void cancel()
  {
    error_code ignored;
    socket_.cancel(ignored);
  }

  /// Closes the socket. Pending operations end with operation_aborted.
  void close()
  {
    if constexpr (requires(error_code & ec) { socket_.close(ec); }) {
      error_code ignored;
      socket_.close(ignored);
    } else {
      socket_.close();
    }
  }

  /// As `socket().connect()`. Blocks, without a deadline.
  template <detail::endpoint_of<NextLayer> Endpoint>
  void connect(const Endpoint& endpoint)
  {
    socket_.connect(endpoint);
  }
  /// As above, with an error instead of an exception.
  template <detail::endpoint_of<NextLayer> Endpoint>
  void connect(const Endpoint& endpoint, error_code& ec)
  {
    socket_.connect(endpoint, ec);
  }
  /// As `asio::connect(socket(), ...)`, for a sequence or a range of endpoints. Blocks, without a
  /// deadline.
  template <class First, class... Rest>
    requires(!detail::endpoint_of<First, NextLayer>)
  auto connect(const First& first, Rest&&... rest)
  {
    return asio::connect(socket_, first, std::forward<Rest>(rest)...);
  }

  /// As `socket().read_some()`. Blocks, without a deadline.
  template <class... Args>
  std::size_t read_some(Args&&... args)
  {
    return socket_.read_some(std::forward<Args>(args)...);
  }
  /// As `socket().write_some()`. Blocks, without a deadline.
  template <class... Args>
  std::size_t write_some(Args&&... args)
  {
    return socket_.write_some(std::forward<Args>(args)...);
  }

  /// Connects to an endpoint.
  ///
  /// @param endpoint  to connect to.
  /// @param token  completion signature `void(error_code)`; the executor's default token, or
  ///               asio::deferred. All members here take tokens like this.
  /// Errors: timed_out if the deadline came first; operation_aborted if cancelled, also by
  ///   wheel.cancel_all() if it has a deadline; wheel_errc::too_many_pending if the wheel rejected
  ///   the deadline; else the socket's errors.
  /// Executor: the handler's associated executor, or the stream's.
  /// Cancellation: terminal, partial and total, passed on to the socket.
  /// Exceptions: std::bad_alloc; nothing is started then.
  template <
    detail::endpoint_of<NextLayer> Endpoint,
    asio::completion_token_for<void(error_code)> Token = detail::default_token_for<executor_type>>
  auto async_connect(const Endpoint& endpoint, Token&& token = {})
  {
    return start<detail::stream_act::connect>(
      [e = typename NextLayer::endpoint_type(endpoint)](NextLayer& s, auto&& handler) {
        s.async_connect(e, std::forward<decltype(handler)>(handler));
      },
      token);
  }

  /// Connects to the first endpoint of a sequence that can be connected to, as
  /// `asio::async_connect`. All attempts share one deadline. Completion signature `void(error_code,
  /// endpoint)`.
  template <detail::endpoint_sequence Endpoints,
            detail::connect_token<NextLayer> Token = detail::default_token_for<executor_type>>
    requires(!detail::connect_condition_of<std::decay_t<Token>, Endpoints>)
  auto async_connect(const Endpoints& endpoints, Token&& token = {})
  {
    return async_connect(endpoints, detail::any_endpoint(), std::forward<Token>(token));
  }

  /// As above, for the endpoints that `condition` lets pass.
  template <detail::endpoint_sequence Endpoints, class Condition,
            detail::connect_token<NextLayer> Token = detail::default_token_for<executor_type>>
    requires detail::connect_condition_of<Condition, Endpoints>
  auto async_connect(const Endpoints& endpoints, Condition condition, Token&& token = {})
  {
    return start<detail::stream_act::connect, typename NextLayer::endpoint_type>(
      [endpoints, condition](NextLayer& s, auto&& handler) {
        asio::async_connect(s, endpoints, condition, std::forward<decltype(handler)>(handler));
      },
      token);
  }

  /// Connects to one endpoint of a range. Completion signature `void(error_code, Iterator)`.
  template <class Iterator, asio::completion_token_for<void(error_code, Iterator)> Token =
                              detail::default_token_for<executor_type>>
    requires(!detail::endpoint_sequence<Iterator> && !detail::endpoint_of<Iterator, NextLayer> &&
             !detail::connect_condition<std::decay_t<Token>, Iterator>)
  auto async_connect(Iterator begin, Iterator end, Token&& token = {})
  {
    return async_connect(begin, end, detail::any_endpoint(), std::forward<Token>(token));
  }

  /// As above, for the endpoints that `condition` lets pass.
  template <class Iterator, class Condition,
            asio::completion_token_for<void(error_code, Iterator)> Token =
              detail::default_token_for<executor_type>>
    requires detail::connect_condition<Condition, Iterator>
  auto async_connect(Iterator begin, Iterator end, Condition condition, Token&& token = {})
  {
    return start<detail::stream_act::connect, Iterator>(
      connecting<Iterator, Condition>{begin, end, condition}, token);
  }

  /// Reads some bytes. Completion signature `void(error_code, std::size_t)`; all else as
  /// async_connect(). But a read into an empty buffer does not time out if the deadline has passed:
  /// asio's ssl::stream delivers by such a read what it has decrypted, and would lose it.
  template <class Buffers, asio::completion_token_for<void(error_code, std::size_t)> Token =
                             detail::default_token_for<executor_type>>
  auto async_read_some(const Buffers& buffers, Token&& token = {})
  {
    return start<detail::stream_act::read, std::size_t>(reading<Buffers>{buffers}, token);
  }

  /// Writes some bytes. All else as async_read_some().
  template <class Buffers, asio::completion_token_for<void(error_code, std::size_t)> Token =
                             detail::default_token_for<executor_type>>
  auto async_write_some(const Buffers& buffers, Token&& token = {})
  {
    return start<detail::stream_act::write, std::size_t>(
      [buffers](NextLayer& s, auto&& handler) {
        s.async_write_some(buffers, std::forward<decltype(handler)>(handler));
      },
      token);
  }

private:
  template <class Other>
  friend class timed_stream;

  template <class Buffers>
  struct reading {
    Buffers buffers;

    template <class Handler>
    void operator()(NextLayer& s, Handler&& handler) const
    {
      s.async_read_some(buffers, std::forward<Handler>(handler));
    }
    [[nodiscard]] bool is_empty() const { return asio::buffer_size(buffers) == 0; }
  };

  template <class Iterator, class Condition>
  struct connecting {
    Iterator begin;
    Iterator end;  ///< the result, if it could connect to none
    Condition condition;

    template <class Handler>
    void operator()(NextLayer& s, Handler&& handler) const
    {
      asio::async_connect(s, begin, end, condition, std::forward<Handler>(handler));
    }
  };

  template <detail::stream_act Act, class... Results>
  class initiation {
  public:
    using executor_type = timed_stream::executor_type;

    explicit initiation(timed_stream& s) : stream_(&s) {}

    [[nodiscard]] executor_type get_executor() const noexcept { return stream_->get_executor(); }

    template <class Handler, class Operation>
    void operator()(Handler&& handler, Operation&& operation) const
    {
      const detail::stream_deadlines& deadlines = stream_->deadlines_;
      const auto end = deadlines.template end_of<Act>();
      const detail::peer_activity feeds = deadlines.template feeds<Act>();
      if (end.until == time_point::max() && feeds == detail::peer_activity::none)
        return operation(stream_->socket_, std::forward<Handler>(handler));
      if (deadlines.has_passed(end.until)) {
        if constexpr (Act == detail::stream_act::read)
          if (operation.is_empty())
            return operation(stream_->socket_, std::forward<Handler>(handler));
        if constexpr (requires { operation.end; })
          return asio::post(get_executor(), asio::append(std::forward<Handler>(handler),
                                                         deadlines.time_out(end), operation.end));
        else
          return asio::post(get_executor(), asio::append(std::forward<Handler>(handler),
                                                         deadlines.time_out(end), Results()...));
      }
      operation(stream_->socket_,
                detail::deadline_token<std::decay_t<Handler>, detail::stream_limit,
                                       detail::deadline_report::timed_out>{
                  std::forward<Handler>(handler), deadlines.limit(end, feeds)});
    }

  private:
    timed_stream* stream_;
  };

  template <detail::stream_act Act, class... Results, class Operation, class Token>
  auto start(Operation operation, Token& token)
  {
    return asio::async_initiate<Token, void(error_code, Results...)>(
      initiation<Act, Results...>(*this), token, std::move(operation));
  }

  [[nodiscard]] detail::wheel_core& core()
  {
    return deadlines_.core([this]() -> auto& {
      return detail::core_of(use_wheel(socket_.get_executor()));
    });
  }
  [[nodiscard]] time_point from_now(duration delay)
  {
    return detail::deadline_after(core(), delay);
  }

  NextLayer socket_;
  detail::stream_deadlines deadlines_;
};

/// A TCP connection with deadlines.
using tcp_stream = timed_stream<asio::ip::tcp::socket>;

}  // namespace asio_wheel
