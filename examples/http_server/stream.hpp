// A connection's socket as a stream whose reads and writes have a deadline, for Beast to work on.
//
// The deadline is that of a phase, say of reading a header, which may take many reads. It belongs
// to each of these reads and not to Beast's operation as a whole: in Boost 1.81, http::async_read
// and its kin forget a cancellation that comes after one read has completed and before the next one
// has begun. A client that sends a byte in the very millisecond of the deadline would have none.
#pragma once

#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace web {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Not thread-safe, and at most one operation at a time.
class stream_base {
public:
  using executor_type = tcp::socket::executor_type;
  using clock = std::chrono::steady_clock;

  explicit stream_base(tcp::socket socket) : socket_(std::move(socket)) {}

  executor_type get_executor() { return socket_.get_executor(); }
  tcp::socket& socket() { return socket_; }

  /// The deadline of all operations from now on. One that it cuts short completes with timed_out.
  void expires_after(clock::duration delay) { deadline_ = clock::now() + delay; }

protected:
  clock::time_point deadline() const { return deadline_; }

private:
  tcp::socket socket_;
  clock::time_point deadline_ = clock::time_point::max();
};

/// Deadlines on the wheel.
class wheel_stream : public stream_base {
public:
  using stream_base::stream_base;

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token)
  {
    return socket().async_read_some(buffers, within(std::forward<Token>(token)));
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token)
  {
    return socket().async_write_some(buffers, within(std::forward<Token>(token)));
  }

private:
  template <class Token>
  auto within(Token&& token) const
  {
    return asio_wheel::timeout_at(deadline(), std::forward<Token>(token));
  }
};

/// The same on a steady_timer, to compare: what beast::tcp_stream does, no more and no less.
class steady_stream : public stream_base {
public:
  explicit steady_stream(tcp::socket s) : stream_base(std::move(s)), timer_(get_executor()) {}

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token)
  {
    return within(std::forward<Token>(token), [this, buffers](auto handler) {
      socket().async_read_some(buffers, std::move(handler));
    });
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token)
  {
    return within(std::forward<Token>(token), [this, buffers](auto handler) {
      socket().async_write_some(buffers, std::move(handler));
    });
  }

private:
  template <class Token, class Start>
  auto within(Token&& token, Start start)
  {
    return asio::async_compose<Token, void(error_code, std::size_t)>(
      [this, start, started = false](auto& self, error_code ec = {}, std::size_t n = 0) mutable {
        if (!std::exchange(started, true)) {
          arm();
          return start(std::move(self));
        }
        disarm();
        if (expired_ && ec == asio::error::operation_aborted) ec = asio::error::timed_out;
        self.complete(ec, n);
      },
      token, socket());
  }

  void arm()
  {
    expired_ = false;
    timer_.expires_at(deadline());
    // It may be under way already when the operation, or the whole stream, is gone.
    timer_.async_wait([this, turn = ++*turn_, now = std::weak_ptr(turn_)](error_code) {
      const auto current = now.lock();
      if (!current || *current != turn) return;
      expired_ = true;
      socket().cancel();
    });
  }

  void disarm()
  {
    ++*turn_;
    timer_.cancel();
  }

  asio::steady_timer timer_;
  std::shared_ptr<std::uint64_t> turn_ = std::make_shared<std::uint64_t>(0);
  bool expired_ = false;
};

}  // namespace web
