// L3 timers: a heartbeat without its executor.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/lazy_state.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>
#include <asio_wheel/heartbeat_options.hpp>

#include <atomic>
#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

class wheel_clock;

/// The waits of a `basic_heartbeat`, and the times from which their deadline follows. A wait ends
/// with timed_out to report peer_lost.
class ASIO_WHEEL_EXPORT heartbeat_state final : public guarding_state {
public:
  heartbeat_state(wheel_core& c, const heartbeat_options& options);
  heartbeat_state(heartbeat_state&& other) noexcept;
  heartbeat_state& operator=(heartbeat_state&& other) noexcept;
  ~heartbeat_state() { retire(); }

  void sent() noexcept;
  void received() noexcept;
  [[nodiscard]] const heartbeat_options& options() const noexcept { return options_; }

private:
  [[nodiscard]] time_point deadline() const noexcept override;
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;
  [[nodiscard]] time_point guarded_until() const noexcept override;
  void note_activity(peer_activity what, time_point now) noexcept override;

  [[nodiscard]] time_point lost_if_silent_since(time_point t, std::size_t pings) const noexcept;

  // What sent() and received() need, in one cache line.
  alignas(32) const wheel_clock* clock_ = nullptr;
  std::atomic<time_point> sent_;
  std::atomic<time_point> received_;
  std::atomic<time_point> reported_;  ///< when the latest event was
  std::size_t pings_ = 0;  ///< unanswered, up to the latest event; the waits' shard guards it
  heartbeat_options options_;
};

/// The handler of an async_next()'s wait. Tells a loss from a ping: the wait ends with timed_out if
/// the peer is lost.
template <class Handler>
struct heartbeat_handler {
  using wrapped_handler = Handler;

  void operator()(const error_code& ec)
  {
    if (ec == asio::error::timed_out)
      std::move(handler)(error_code{}, heartbeat_event::peer_lost);
    else
      std::move(handler)(ec, heartbeat_event::send_ping);
  }

  [[nodiscard]] const Handler& inner() const noexcept { return handler; }

  Handler handler;
};

}  // namespace asio_wheel::detail
