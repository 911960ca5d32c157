// L3 timers: a watchdog without its executor.
#pragma once

#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/lazy_state.hpp>
#include <asio_wheel/detail/engine/pressure.hpp>
#include <asio_wheel/idle_window.hpp>

namespace asio_wheel::detail {

class wheel_clock;

/// The waits of a `basic_wheel_watchdog`, and the times from which their deadline follows.
///
/// The deadline consists of numbers that any thread may read at any time. A guard's shard reads
/// them during a move, too, without the lock that the move holds.
class ASIO_WHEEL_EXPORT watchdog_state final : public guarding_state, private adaptive {
public:
  watchdog_state(wheel_core& c, duration timeout);
  watchdog_state(wheel_core& c, const idle_window& window);
  watchdog_state(watchdog_state&& other) noexcept;
  watchdog_state& operator=(watchdog_state&& other) noexcept;
  ~watchdog_state();

  void touch() noexcept;

  [[nodiscard]] duration timeout() const noexcept;
  void set_timeout(duration timeout);

private:
  void leave() noexcept;

  [[nodiscard]] time_point deadline() const noexcept override;
  void note_activity(peer_activity what, time_point now) noexcept override;
  void follow_pressure() noexcept override;

  const wheel_clock* clock_;
};

}  // namespace asio_wheel::detail
