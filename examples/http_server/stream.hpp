// A connection's socket as a stream whose reads and writes have a deadline, for Beast to work on.
//
// The deadline is that of a phase, say of reading a header, which may take many reads. It belongs
// to each of these and not to Beast's operation as a whole: in Boost 1.81, http::async_read and its
// kin forget a cancellation that comes after one read has completed and before the next one has
// begun. A client that sends its bytes just fast enough would have no deadline any more.
#pragma once

#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace web {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

/// Not thread-safe, and at most one operation at a time. `Watch` ends it at the deadline.
template <class Watch>
class stream {
public:
  using executor_type = tcp::socket::executor_type;

  explicit stream(tcp::socket socket) : socket_(std::move(socket)), watch_(socket_) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  tcp::socket& socket() { return socket_; }

  /// The deadline of all operations from now on. One that it cuts short completes with timed_out.
  void expires_after(clock::duration delay) { deadline_ = clock::now() + delay; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token)
  {
    return start([this, buffers](auto t) { socket_.async_read_some(buffers, std::move(t)); },
                 token);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token)
  {
    return start([this, buffers](auto t) { socket_.async_write_some(buffers, std::move(t)); },
                 token);
  }

private:
  template <class Operation, class Token>
  auto start(Operation operation, Token& token)
  {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
      [this](auto handler, Operation op) {
        if (clock::now() < deadline_) return watch_.run(op, deadline_, std::move(handler));
        // With a client that is always ready, no operation would ever have to wait, and none would
        // be cut short.
        asio::post(
          get_executor(),
          asio::append(std::move(handler), error_code(asio::error::timed_out), std::size_t{0}));
      },
      token, std::move(operation));
  }

  tcp::socket socket_;
  clock::time_point deadline_ = clock::time_point::max();
  Watch watch_;
};

/// Deadlines on the wheel.
struct on_wheel {
  explicit on_wheel(tcp::socket&) {}

  template <class Operation, class Handler>
  void run(Operation& operation, clock::time_point deadline, Handler handler)
  {
    operation(asio_wheel::timeout_at(deadline, std::move(handler)));
  }
};

/// The same on a steady_timer, to compare: what beast::tcp_stream does, no more and no less.
class on_steady_timer {
public:
  explicit on_steady_timer(tcp::socket& socket) : socket_(socket), timer_(socket.get_executor()) {}

  template <class Operation, class Handler>
  void run(Operation& operation, clock::time_point deadline, Handler handler)
  {
    asio::async_compose<Handler, void(error_code, std::size_t)>(
      [this, operation, deadline, started = false](auto& self, error_code ec = {},
                                                   std::size_t n = 0) mutable {
        if (!std::exchange(started, true)) {
          arm(deadline);
          return operation(std::move(self));
        }
        ++*turn_;
        timer_.cancel();
        if (expired_ && ec == asio::error::operation_aborted) ec = asio::error::timed_out;
        self.complete(ec, n);
      },
      handler, socket_);
  }

private:
  void arm(clock::time_point deadline)
  {
    expired_ = false;
    timer_.expires_at(deadline);
    // This may be under way already when the operation, or the whole stream, is gone.
    timer_.async_wait([this, turn = ++*turn_, now = std::weak_ptr(turn_)](error_code) {
      const auto current = now.lock();
      if (!current || *current != turn) return;
      expired_ = true;
      socket_.cancel();
    });
  }

  tcp::socket& socket_;
  asio::steady_timer timer_;
  std::shared_ptr<std::uint64_t> turn_ = std::make_shared<std::uint64_t>(0);
  bool expired_ = false;
};

using wheel_stream = stream<on_wheel>;
using steady_stream = stream<on_steady_timer>;

}  // namespace web
