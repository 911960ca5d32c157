// All that waits in these programs, twice: on the timing wheel, and on Asio's steady_timer. --timer
// chooses one of these structs as the programs' template parameter; nothing else differs.
#pragma once

#include "steady_timers.hpp"

#include <asio_wheel.hpp>
#include <boost/asio.hpp>
#include <boost/program_options.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace rpc {

struct wheel_timers {
  static constexpr std::string_view name = "wheel";

  using timer = asio_wheel::wheel_timer;
  using watchdog = asio_wheel::wheel_watchdog;
  using heartbeat = asio_wheel::heartbeat;
  template <class Key>
  using scheduler = asio_wheel::keyed_scheduler<Key>;

  explicit wheel_timers(asio::io_context& context) : wheel(asio_wheel::make_wheel(context)) {}

  /// A token for operations that end with timed_out by the policy.
  template <class Token>
  auto timeout_after(asio_wheel::timeout_policy& policy, Token&& token) const
  {
    return asio_wheel::timeout_after(wheel, policy, std::forward<Token>(token));
  }

  asio_wheel::wheel_stats stats() const { return wheel.stats(); }

  asio_wheel::wheel_timer_service& wheel;
};

struct steady_timers {
  static constexpr std::string_view name = "steady";

  using timer = asio::steady_timer;
  using watchdog = steady_watchdog;
  using heartbeat = steady_heartbeat;
  template <class Key>
  using scheduler = steady_scheduler<Key>;

  explicit steady_timers(asio::io_context& c) : context(c) {}

  /// A token for operations that end with operation_aborted after the time of the policy, which
  /// begins now. The policy counts nothing.
  template <class Token>
  auto timeout_after(const asio_wheel::timeout_policy& policy, Token&& token) const
  {
    struct deadline {
      asio::steady_timer timer;
      asio::cancellation_signal signal;
    };
    // The handler owns the timer, so completing the operation cancels the wait.
    const auto d = std::make_shared<deadline>(asio::steady_timer(context, policy.limit()));
    d->timer.async_wait([weak = std::weak_ptr(d)](error_code ec) {
      const auto alive = weak.lock();
      if (!ec && alive) alive->signal.emit(asio::cancellation_type::terminal);
    });
    return asio::consign(asio::bind_cancellation_slot(d->signal.slot(), std::forward<Token>(token)),
                         d);
  }

  static asio_wheel::wheel_stats stats() { return {}; }

  asio::io_context& context;
};

/// Calls `f.operator()<Timers>()` with the timers of that name. Throws po::error if there are none.
template <class F>
auto with_timers(std::string_view name, F f)
{
  if (name == wheel_timers::name) return f.template operator()<wheel_timers>();
  if (name == steady_timers::name) return f.template operator()<steady_timers>();
  throw boost::program_options::error("--timer must be wheel or steady, not '" + std::string(name) +
                                      "'");
}

}  // namespace rpc
