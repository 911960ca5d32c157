// L3 roof: who gets which tick of an interval.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/missed_tick.hpp>
#include <asio_wheel/wheel_timer.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace asio_wheel::detail {

/// A `basic_wheel_interval` without its executor. The interval and every pending async_tick own it,
/// so an async_tick may outlive its interval.
///
/// All async_ticks wait on one timer. The first that finds its expiry passed **takes** the tick and
/// sets the timer to the next one, which turns out the other waits with operation_aborted. These
/// take the next tick if that is due as well, and otherwise share the one just taken.
///
/// Each change of the timer begins a new **epoch**. A wait that ends with operation_aborted in a
/// later epoch than it began in was turned out: by a take; by a reset, and then it starts again; or
/// by a cancel, which ends it. So does wheel.cancel_all(), which the epochs do not tell.
class ASIO_WHEEL_EXPORT interval_schedule : public intrusive_ref_counter<interval_schedule> {
public:
  using epoch = std::uint64_t;

  /// When a wait began.
  struct beginning {
    epoch at = 0;
    std::uint64_t cancel_alls = 0;  ///< of the wheel, until then
  };

  /// Throws std::invalid_argument if the period is not more than zero.
  interval_schedule(wheel_timer_service& wheel, time_point first, duration period,
                    missed_tick missed);

  [[nodiscard]] duration period() const noexcept { return period_; }
  void cancel() noexcept;
  void reset() noexcept;

  /// Ends all async_ticks, also those that start later.
  void close() noexcept;

  /// That of a wait which begins now.
  [[nodiscard]] beginning present() const noexcept;

  /// Waits for the next tick. `began` comes from present() or take(); hand it to take() afterwards.
  template <class Handler>
  void wait(Handler& handler, const beginning& began)
  {
    timer_.async_wait(std::move(handler));
    turn_out_since(began.at);
  }

  /// How an async_tick continues after a wait that began then and ended with `ec`: it completes
  /// with `ec` and the returned tick or, if nothing is returned, waits again with the new `began`.
  [[nodiscard]] std::optional<time_point> take(error_code& ec, beginning& began);

private:
  [[nodiscard]] beginning present_in_lock() const noexcept;
  void set_next(time_point t) noexcept;
  void turn_out_since(epoch began) noexcept;

  const intrusive_ptr<wheel_core> core_;
  const duration period_;
  const missed_tick missed_;
  wheel_timer timer_;

  mutable std::mutex mutex_;  ///< guards all below, and that the timer expires at `next_`
  time_point next_;
  time_point taken_;       ///< the latest tick that was taken
  epoch taken_until_ = 0;  ///< waits that began before this epoch share it
  epoch epoch_ = 0;
  epoch cancelled_ = 0;  ///< waits that began before this epoch are to end
  bool closed_ = false;
};

}  // namespace asio_wheel::detail
