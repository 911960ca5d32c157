// L2 engine: what a driver drives.
#pragma once

#include <asio_wheel/detail/base/tick.hpp>

namespace asio_wheel::detail {

/// Something that has work to do from time to time, as its driver sees it.
class driver_client {
public:
  /// The tick of the next pass, or `at_once`; no_tick if there is no reason for one. From any
  /// thread.
  [[nodiscard]] virtual tick next_tick() noexcept = 0;

  /// Does what there is to do by now. On the driver's strand.
  virtual void pass() = 0;

  /// Called behind each pass, when the strand is free again, in the same thread.
  virtual void follow_pass() = 0;

  /// An executor of somebody else's has refused the strand's turn.
  virtual void turn_was_refused() noexcept = 0;

protected:
  ~driver_client() = default;
};

}  // namespace asio_wheel::detail
