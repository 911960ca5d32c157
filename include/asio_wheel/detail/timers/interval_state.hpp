// L3 timers: the ticks of an interval, and the waits for them.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/lazy_state.hpp>
#include <asio_wheel/detail/engine/wraps_handler.hpp>
#include <asio_wheel/missed_tick.hpp>

#include <cstdint>
#include <utility>

namespace asio_wheel::detail {

class interval_state;

/// A wait for a tick. The tick is its deadline. The lock of its shard guards it.
class ASIO_WHEEL_EXPORT awaited_tick final : public moving_deadline {
public:
  /// When the tick that the wait got is due.
  [[nodiscard]] time_point time() const noexcept { return time_; }

private:
  friend class interval_state;

  [[nodiscard]] time_point deadline() const noexcept override;
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;

  interval_state* of_ = nullptr;
  std::uint64_t began_ = 0;  ///< ticks taken before the wait began
  time_point time_{};
};

/// A wait with its tick. It is always linked, so that the shard finds the link.
class tick_wait_op : public linked<lazy_wait_op> {
public:
  awaited_tick tick;

protected:
  using linked<lazy_wait_op>::linked;
};
template <>
class linked<tick_wait_op> : public tick_wait_op {
protected:
  using tick_wait_op::tick_wait_op;
};

/// A `basic_wheel_interval` without its executor. The interval and every pending async_tick own it,
/// so an async_tick may outlive its interval.
///
/// All async_ticks wait for one tick. When it is due, the first handler to begin **takes** the
/// tick, and sets the next tick. The other waits are due as well: each takes the next tick if it is
/// due, too. Otherwise it shares the latest tick, unless it began after the latest tick was taken.
///
/// A reset moves the deadline of all. Nobody waits longer than until the next tick, so every wait
/// is filed for the next tick or an earlier time.
class ASIO_WHEEL_EXPORT interval_state final : public lazy_state,
                                               public intrusive_ref_counter<interval_state> {
public:
  /// Throws std::invalid_argument if the period is not more than zero.
  interval_state(wheel_core& c, time_point first, duration period, missed_tick missed);
  ~interval_state() { cancel(); }

  [[nodiscard]] duration period() const noexcept { return period_; }
  void reset() noexcept;

  /// Cancels all async_ticks, also later ones.
  void close() noexcept;

  /// Starts a wait for the next tick. All else as lazy_state::start().
  void start(tick_wait_op& op);

private:
  friend class awaited_tick;

  [[nodiscard]] time_point deadline() const noexcept override { return next_; }
  [[nodiscard]] bool was_ahead() const noexcept override { return was_ahead_; }

  void set_next(time_point t) noexcept;
  void take(awaited_tick& tick, time_point now) noexcept;
  [[nodiscard]] bool shares(const awaited_tick& tick) const noexcept
  {
    return tick.began_ < shared_until_;
  }

  const duration period_;
  const missed_tick missed_;

  // Guarded by the lock of the waits' shard.
  time_point next_{};
  bool was_ahead_ = false;  ///< `next_`, when it was set
  bool closed_ = false;
  time_point latest_{};             ///< tick taken
  std::uint64_t taken_ = 0;         ///< ticks taken so far
  std::uint64_t shared_until_ = 0;  ///< waits with a smaller `began_` share the latest tick
};

/// The handler of an async_tick()'s wait. Tells the user's handler which tick it was.
template <class Handler>
struct tick_handler {
  using wrapped_handler = Handler;

  /// The wait calls this right before the handler.
  void take_result(const tick_wait_op& op) noexcept { time = op.tick.time(); }

  void operator()(const error_code& ec) { std::move(handler)(ec, ec ? time_point{} : time); }

  [[nodiscard]] const Handler& inner() const noexcept { return handler; }

  Handler handler;
  intrusive_ptr<interval_state> owner;  ///< while the wait is pending
  time_point time{};
};

}  // namespace asio_wheel::detail
