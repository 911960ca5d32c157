// L2 engine: what a driver drives.
#pragma once

#include <asio_wheel/detail/wheel/wheel_entry.hpp>

namespace asio_wheel::detail {

/// Something with work to do from time to time, as its driver sees it.
class driver_client {
public:
  /// The tick of the next pass, or `at_once`; none if no pass is needed. Called from any thread.
  [[nodiscard]] virtual maybe_tick next_tick() noexcept = 0;

  /// Does the work that is due by now. Called on the driver's strand.
  virtual void pass() = 0;

  /// Called behind each pass, when the strand is free again, in the same thread.
  virtual void follow_pass() = 0;

  /// A foreign executor has refused the strand's turn.
  virtual void turn_was_refused() noexcept = 0;

protected:
  ~driver_client() = default;
};

}  // namespace asio_wheel::detail
