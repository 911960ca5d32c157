// One connection through the proxy: two sockets, and bytes that move in two directions.
#pragma once

#include "timers.hpp"

#include <boost/asio.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <unordered_set>
#include <utility>

namespace proxy {

/// Completes a coroutine that should not throw: an exception leaves through run().
inline constexpr auto rethrow = [](std::exception_ptr thrown) {
  if (thrown) std::rethrow_exception(thrown);
};

struct figures {
  std::uint64_t connections = 0;
  std::uint64_t refused = 0;       // the upstream could not be reached
  std::uint64_t timed_out = 0;     // the upstream did not answer in time
  std::uint64_t idle = 0;          // closed because nothing moved in either direction
  std::uint64_t stuck = 0;         // closed because one side took nothing of what the other sent
  std::uint64_t up = 0, down = 0;  // bytes to and from the upstream
};

template <class Timers>
class session;

/// What the sessions share.
template <class Timers>
struct surroundings {
  endpoints upstream;
  std::chrono::milliseconds connect_timeout;
  std::chrono::milliseconds idle_timeout;
  figures counted;
  std::unordered_set<session<Timers>*> sessions;  // all that are alive
};

/// Not thread-safe: all of it runs on the socket's executor.
///
/// The session passes on an end of file after all bytes before it. The other direction goes on as
/// long as its sender likes. A reset is passed on as a reset, and ends both directions.
///
/// Each direction has a watchdog that is touched when bytes move in it. It expires for two reasons:
/// - the receiver takes nothing of what there is for it. It is stuck, and the session ends.
/// - there is nothing to carry. That alone is fine: a subscriber may be silent for hours. The
///   session ends only if the other direction has nothing to carry either, or is at its end.
template <class Timers>
class session : public std::enable_shared_from_this<session<Timers>> {
public:
  session(tcp::socket client, surroundings<Timers>& s)
    : surroundings_(s),
      client_(std::move(client)),
      upstream_(client_.get_executor()),
      up_(client_, upstream_, s.idle_timeout, s.counted.up),
      down_(upstream_, client_, s.idle_timeout, s.counted.down)
  {
    s.sessions.insert(this);
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() { surroundings_.sessions.erase(this); }

  void start()
  {
    ++surroundings_.counted.connections;
    spawn([this] { return connect(); });
  }

  /// Ends everything that waits for this session. The last of these destroys the session.
  void close()
  {
    error_code ignored;
    client_.close(ignored);
    upstream_.close(ignored);
    up_.end();
    down_.end();
  }

private:
  struct direction {
    direction(tcp::socket& from_, tcp::socket& to_, clock::duration timeout, std::uint64_t& bytes_)
      : from(from_),
        to(to_),
        idle(from_.get_executor(), timeout),
        bytes(bytes_)
    {}

    void moved()
    {
      idle.touch();
      is_silent = false;
    }

    void end()
    {
      is_over = is_silent = true;
      idle.cancel();
    }

    tcp::socket& from;
    tcp::socket& to;
    typename Timers::watchdog idle;
    std::uint64_t& bytes;
    bool is_writing = false;
    bool is_silent = false;  // nothing came for the idle timeout, or the direction has ended
    bool is_over = false;
    std::array<char, 16 * 1024> buffer;
  };

  /// The session lives as long as one of its coroutines.
  template <class F>
  void spawn(F f)
  {
    asio::co_spawn(
      client_.get_executor(), [self = this->shared_from_this(), f] { return f(); }, rethrow);
  }

  asio::awaitable<void> connect()
  {
    const auto ec =
      co_await Timers::connect(upstream_, surroundings_.upstream, surroundings_.connect_timeout);
    if (!client_.is_open()) co_return close();  // the proxy stops
    if (ec) {
      auto& counted = surroundings_.counted;
      ++(ec == asio::error::timed_out ? counted.timed_out : counted.refused);
      co_return reset();
    }
    for (tcp::socket* s : {&client_, &upstream_}) {
      error_code ignored;
      s->set_option(tcp::no_delay(true), ignored);
    }
    for (direction* d : {&up_, &down_}) {
      direction& other = d == &up_ ? down_ : up_;
      d->moved();
      spawn([this, d, &other] { return watch(*d, other); });
      spawn([this, d, &other] { return carry(*d, other); });
    }
  }

  asio::awaitable<void> carry(direction& d, direction& other)
  {
    while (true) {
      const auto [read_error, n] =
        co_await d.from.async_read_some(asio::buffer(d.buffer), no_throw);
      if (read_error == asio::error::eof) break;
      if (read_error) co_return reset();
      d.moved();
      d.is_writing = true;
      const auto [write_error, written] =
        co_await asio::async_write(d.to, asio::buffer(d.buffer, n), no_throw);
      d.is_writing = false;
      d.moved();
      d.bytes += written;
      // The receiver may have said why it takes no more, so the other direction goes on to its end.
      if (write_error) break;
    }
    error_code ignored;
    d.to.shutdown(tcp::socket::shutdown_send, ignored);
    d.end();
    if (other.is_over) close();
  }

  asio::awaitable<void> watch(direction& d, direction& other)
  {
    auto& counted = surroundings_.counted;
    while (co_await d.idle.expired()) {
      if (d.is_over) break;
      if (d.is_writing || other.is_silent) {
        ++(d.is_writing ? counted.stuck : counted.idle);
        close();
        break;
      }
      d.is_silent = true;
      d.idle.touch();
    }
  }

  /// Closes both sides with a reset, so that neither believes it has everything.
  void reset()
  {
    for (tcp::socket* s : {&client_, &upstream_}) {
      error_code ignored;
      s->set_option(asio::socket_base::linger(true, 0), ignored);
    }
    close();
  }

  surroundings<Timers>& surroundings_;
  tcp::socket client_;
  tcp::socket upstream_;
  direction up_;
  direction down_;
};

}  // namespace proxy
