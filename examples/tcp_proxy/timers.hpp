// The proxy's timeouts: on the wheel, on steady_timer, or none.
//
// Each of these types is a parameter of the same proxy. The proxy touches a watchdog whenever bytes
// move. An operation that a watchdog guards is cancelled when there was no touch for the idle
// timeout, and ends with the error `expired`.
#pragma once

#include <asio_wheel.hpp>
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>
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
  using watchdog = asio_wheel::wheel_watchdog;
  static constexpr auto expired = asio::error::timed_out;

  static asio::awaitable<error_code> connect(tcp::socket& socket, const endpoints& to,
                                             clock::duration timeout)
  {
    const auto [ec, endpoint] =
      co_await asio::async_connect(socket, to, asio_wheel::timeout_after(timeout, no_throw));
    co_return ec;
  }
};

/// What the proxy uses of wheel_watchdog, written with a timer. With `Rearm` in the plainest way:
/// each touch sets the timer anew, so that a wait is cancelled and another one started. Otherwise a
/// touch is cheap here, too: when the timer expires, it checks whether to wait again.
template <class Timer, bool Rearm>
class timer_watchdog {
public:
  timer_watchdog(const asio::any_io_executor& ex, clock::duration timeout)
    : state_(std::make_shared<state>(ex, timeout))
  {
    state_->wait();
  }

  void touch()
  {
    state_->touched = clock::now();
    if constexpr (Rearm) state_->wait();
  }

  /// A token for one operation at a time. There may be two.
  template <class Token>
  auto guard(Token&& token)
  {
    return asio::bind_cancellation_slot(state_->signals.at(state_->guarded++).slot(),
                                        std::forward<Token>(token));
  }

private:
  struct state : std::enable_shared_from_this<state> {
    state(const asio::any_io_executor& ex, clock::duration t) : timer(ex), timeout(t) {}

    /// Sets the timer. A wait may succeed although it was cancelled, or the watchdog is gone.
    void wait()
    {
      timer.expires_at(touched + timeout);
      timer.async_wait([weak = this->weak_from_this()](error_code ec) {
        const auto alive = weak.lock();
        if (alive && !ec) alive->look();
      });
    }

    void look()
    {
      const auto now = clock::now();
      if (touched + timeout <= now) {
        for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
        touched = now;  // looks again one timeout later
      }
      wait();
    }

    Timer timer;
    clock::duration timeout;
    clock::time_point touched = clock::now();
    std::array<asio::cancellation_signal, 2> signals;
    std::size_t guarded = 0;
  };

  std::shared_ptr<state> state_;
};

/// The same on steady_timer.
struct steady_timers {
  using timer = asio::steady_timer;
  using watchdog = timer_watchdog<timer, false>;
  static constexpr auto expired = asio::error::operation_aborted;  // nobody else cancels anything

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

/// The same with timers that each touch sets anew.
template <class Timers>
struct rearmed : Timers {
  using watchdog = timer_watchdog<typename Timers::timer, true>;
  static constexpr auto expired = asio::error::operation_aborted;
};

/// No timeouts, to see what the proxy costs without them.
struct no_timers {
  using timer = asio::steady_timer;
  static constexpr auto expired = asio::error::operation_aborted;  // of a session that is closed

  class watchdog {
  public:
    watchdog(const asio::any_io_executor&, clock::duration) {}

    void touch() {}
    static auto guard(const auto& token) { return token; }
  };

  static asio::awaitable<error_code> connect(tcp::socket& socket, const endpoints& to,
                                             clock::duration)
  {
    const auto [ec, endpoint] = co_await asio::async_connect(socket, to, no_throw);
    co_return ec;
  }
};

}  // namespace proxy
