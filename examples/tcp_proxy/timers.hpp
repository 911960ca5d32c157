// The proxy's timeouts: on the wheel, on steady_timer, or none.
//
// Each of these types is a parameter of the same proxy. The proxy touches a watchdog whenever bytes
// move. expired() waits until there was no touch for the idle timeout, and returns false if it is
// cancelled before.
#pragma once

#include <asio_wheel.hpp>
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <chrono>
#include <tuple>
#include <vector>

namespace proxy {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using clock = std::chrono::steady_clock;
using endpoints = std::vector<tcp::endpoint>;

inline constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

/// All timeouts on the wheel.
struct wheel_timers {
  using timer = asio_wheel::wheel_timer;

  class watchdog : public asio_wheel::wheel_watchdog {
  public:
    using basic_wheel_watchdog::basic_wheel_watchdog;

    asio::awaitable<bool> expired()
    {
      const auto [cancelled] = co_await async_expired(no_throw);
      co_return !cancelled;
    }
  };

  static asio::awaitable<error_code> connect(tcp::socket& socket, const endpoints& to,
                                             clock::duration timeout)
  {
    const auto [ec, endpoint] =
      co_await asio::async_connect(socket, to, asio_wheel::timeout_after(timeout, no_throw));
    co_return ec;
  }
};

/// The same on steady_timer. A touch is cheap here, too: when the timer expires, it checks whether
/// to wait again.
struct steady_timers {
  using timer = asio::steady_timer;

  class watchdog {
  public:
    watchdog(const asio::any_io_executor& ex, clock::duration timeout)
      : timer_(ex),
        timeout_(timeout)
    {}

    void touch() { touched_ = clock::now(); }

    void cancel()
    {
      cancelled_ = true;
      timer_.cancel();
    }

    asio::awaitable<bool> expired()
    {
      while (!cancelled_ && clock::now() < touched_ + timeout_) {
        timer_.expires_at(touched_ + timeout_);
        co_await timer_.async_wait(no_throw);
      }
      co_return !cancelled_;
    }

  private:
    timer timer_;
    clock::duration timeout_;
    clock::time_point touched_ = clock::now();
    bool cancelled_ = false;
  };

  static asio::awaitable<error_code> connect(tcp::socket& socket, const endpoints& to,
                                             clock::duration timeout)
  {
    using namespace asio::experimental::awaitable_operators;
    timer deadline(socket.get_executor(), timeout);
    const auto first =
      co_await (asio::async_connect(socket, to, no_throw) || deadline.async_wait(no_throw));
    if (first.index() == 1) co_return asio::error::timed_out;
    co_return std::get<0>(std::get<0>(first));
  }
};

/// The same with the plainest watchdog: each touch sets the timer anew, so that whenever bytes move
/// a wait is cancelled and another one started.
template <class Timers>
struct rearmed : Timers {
  class watchdog {
  public:
    watchdog(const asio::any_io_executor& ex, clock::duration timeout)
      : timer_(ex, timeout),
        timeout_(timeout)
    {}

    void touch() { timer_.expires_after(timeout_); }

    void cancel()
    {
      cancelled_ = true;
      timer_.cancel();
    }

    asio::awaitable<bool> expired()
    {
      while (!cancelled_) {
        const auto [touched] = co_await timer_.async_wait(no_throw);
        if (!touched) break;
      }
      co_return !cancelled_;
    }

  private:
    typename Timers::timer timer_;
    clock::duration timeout_;
    bool cancelled_ = false;
  };
};

/// No timeouts, to see what the proxy costs without them.
struct no_timers {
  using timer = asio::steady_timer;

  class watchdog {
  public:
    watchdog(const asio::any_io_executor&, clock::duration) {}

    void touch() {}
    void cancel() {}
    asio::awaitable<bool> expired() { co_return false; }
  };

  static asio::awaitable<error_code> connect(tcp::socket& socket, const endpoints& to,
                                             clock::duration)
  {
    const auto [ec, endpoint] = co_await asio::async_connect(socket, to, no_throw);
    co_return ec;
  }
};

}  // namespace proxy
