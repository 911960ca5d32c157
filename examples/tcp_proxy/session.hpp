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
#include <tuple>
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
/// One watchdog guards the reads of both directions, and is touched when bytes move in either. So a
/// subscriber may be silent for hours, as long as something comes for it. Each direction has
/// another watchdog, which guards its writes and is touched when a write begins. A write ends when
/// the kernel has taken some of the bytes. A receiver for which it takes none is stuck, whatever
/// moves in the other direction.
template <class Timers>
class session : public std::enable_shared_from_this<session<Timers>> {
public:
  session(tcp::socket client, surroundings<Timers>& s)
    : surroundings_(s),
      client_(std::move(client)),
      upstream_(client_.get_executor()),
      idle_(client_.get_executor(), s.idle_timeout),
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
  }

private:
  struct direction {
    direction(tcp::socket& from_, tcp::socket& to_, clock::duration timeout, std::uint64_t& bytes_)
      : from(from_),
        to(to_),
        stuck(to_.get_executor(), timeout),
        bytes(bytes_)
    {}

    tcp::socket& from;
    tcp::socket& to;
    typename Timers::watchdog stuck;
    std::uint64_t& bytes;
    std::array<char, 16 * 1024> buffer;
    asio::const_buffer rest;  // what the receiver has yet to take
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
    idle_.touch();
    for (direction* d : {&up_, &down_}) spawn([this, d] { return carry(*d); });
  }

  asio::awaitable<void> carry(direction& d)
  {
    auto unless_idle = idle_.guard(no_throw);
    auto unless_stuck = d.stuck.guard(no_throw);
    error_code ec;
    std::size_t n = 0;
    while (!ec) {
      if (d.rest.size() == 0) {
        std::tie(ec, n) = co_await d.from.async_read_some(asio::buffer(d.buffer), unless_idle);
        d.rest = asio::buffer(d.buffer, n);
      } else {
        d.stuck.touch();
        std::tie(ec, n) = co_await d.to.async_write_some(d.rest, unless_stuck);
        d.rest += n;
        d.bytes += n;
      }
      idle_.touch();
    }
    if (ec == Timers::expired) co_return give_up();
    if (d.rest.size() == 0 && ec != asio::error::eof) co_return reset();
    // A receiver may have said why it takes no more, so the other direction goes on to its end.
    d.rest = {};
    d.to.shutdown(tcp::socket::shutdown_send, ec);
  }

  /// A watchdog has expired. If a write waited, a receiver is stuck: the bytes that it has not
  /// taken were the last to move.
  void give_up()
  {
    if (!client_.is_open()) return;  // the other direction came first
    auto& counted = surroundings_.counted;
    ++(up_.rest.size() + down_.rest.size() != 0 ? counted.stuck : counted.idle);
    close();
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
  typename Timers::watchdog idle_;
  direction up_;
  direction down_;
};

}  // namespace proxy
