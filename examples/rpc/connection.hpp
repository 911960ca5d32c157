// A socket that carries frames, for both programs: bounded memory in both directions.
//
// The owner reads in a coroutine. A callback writes, and nobody waits for it: messages that are
// sent during a write gather in a second buffer, which is written in one piece afterwards. Not
// thread-safe: all of it runs on the socket's executor.
#pragma once

#include "protocol.hpp"

#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace rpc {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

inline std::string to_string(const tcp::endpoint& endpoint)
{
  std::ostringstream text;
  text << endpoint;
  return text.str();
}

/// Completes a coroutine that should not throw: an exception leaves through run().
inline constexpr auto rethrow = [](std::exception_ptr thrown) {
  if (thrown) std::rethrow_exception(thrown);
};

/// sent_some() and room() wait on a `Timer`.
template <class Timer>
class connection : public std::enable_shared_from_this<connection<Timer>> {
public:
  /// When this much waits to be sent, the peer must read before it gets more.
  static constexpr std::size_t most_unsent = 64 * 1024;

  explicit connection(tcp::socket socket)
    : socket_(std::move(socket)),
      sent_some_(socket_.get_executor(), Timer::time_point::max())
  {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    const tcp::endpoint peer = socket_.remote_endpoint(ignored);
    peer_ = ignored ? "a peer that is gone" : to_string(peer);
  }

  const asio::any_io_executor& executor() { return socket_.get_executor(); }
  const std::string& peer() const { return peer_; }
  bool is_open() const { return socket_.is_open(); }

  void close()
  {
    error_code ignored;
    socket_.close(ignored);
    queued_.clear();
    sent_some_.cancel();
  }

  /// Waits for more bytes. False once either side has closed the connection.
  asio::awaitable<bool> read_some()
  {
    std::copy(in_.begin() + begin_, in_.begin() + end_, in_.begin());
    end_ -= begin_;
    begin_ = 0;
    error_code ec;
    // There is room: next_frame() leaves less than one frame, and the longest frame fits.
    const std::size_t n = co_await socket_.async_read_some(
      asio::buffer(in_.data() + end_, in_.size() - static_cast<std::size_t>(end_)),
      asio::redirect_error(asio::use_awaitable, ec));
    end_ += static_cast<std::ptrdiff_t>(n);
    co_return !ec && is_open();
  }

  /// The next complete frame, valid until read_some(). Throws protocol_error.
  std::optional<frame> next_frame()
  {
    std::string_view bytes(in_.data() + begin_, static_cast<std::size_t>(end_ - begin_));
    const auto next = take_frame(bytes);
    begin_ = end_ - static_cast<std::ptrdiff_t>(bytes.size());
    return next;
  }

  /// Never waits and never fails; a broken connection shows in read_some().
  void send(kind what, std::uint64_t id, std::string_view payload = {})
  {
    if (!is_open()) return;
    put_frame(queued_, what, id, payload);
    if (sending_.empty()) write();
  }

  /// Waits until something has been sent, or the connection is closed.
  asio::awaitable<void> sent_some()
  {
    error_code cancelled;
    co_await sent_some_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }

  /// Waits until the peer has read enough for another frame, or the connection is closed.
  asio::awaitable<void> room()
  {
    while (is_open() && queued_.size() >= most_unsent) co_await sent_some();
  }

private:
  void write()
  {
    sending_.swap(queued_);
    asio::async_write(socket_, asio::buffer(sending_),
                      [self = this->shared_from_this()](error_code ec, std::size_t) {
                        self->sending_.clear();
                        if (ec || !self->is_open()) return self->close();
                        if (!self->queued_.empty()) self->write();
                        self->sent_some_.cancel();
                      });
  }

  tcp::socket socket_;
  std::string peer_;
  std::array<char, longest_frame> in_;
  std::ptrdiff_t begin_ = 0, end_ = 0;  // the part of in_ that nobody has taken yet
  std::string sending_;                 // empty if no write is going on
  std::string queued_;
  Timer sent_some_;  // never expires: a condition variable, notified by a cancel
};

}  // namespace rpc
