// L3 roof: a watchdog without its executor.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/service/adaptive.hpp>
#include <asio_wheel/detail/service/lazy_state.hpp>
#include <asio_wheel/idle_window.hpp>

#include <atomic>

namespace asio_wheel::detail {

class wheel_clock;

/// The waits of a `basic_wheel_watchdog`, and the times from which their deadline follows.
///
/// The deadline consists of numbers that any thread may read at any time. A guard's shard reads
/// them during a move, too: its lock is not the one that the move holds.
class ASIO_WHEEL_EXPORT watched_state final : public guarding_state, private adaptive {
public:
  watched_state(wheel_core& c, duration timeout);
  watched_state(wheel_core& c, const idle_window& window);
  watched_state(watched_state&& other) noexcept;
  watched_state& operator=(watched_state&& other) noexcept;
  ~watched_state();

  void touch() noexcept;

  [[nodiscard]] duration timeout() const noexcept;
  void set_timeout(duration timeout);

private:
  void leave() noexcept;

  [[nodiscard]] time_point deadline() const noexcept override;
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;
  void follow_pressure() noexcept override;

  const wheel_clock* clock_;
};

}  // namespace asio_wheel::detail
