// L2 service: what a driver drives.
#pragma once

#include <asio_wheel/detail/ground/tick.hpp>

namespace asio_wheel::detail {

/// Something that has work to do from time to time, as its driver sees it.
class driven {
public:
  /// Does what there is to do by now. Returns the tick of the next pass; no_tick if there is no
  /// reason for one. On the driver's strand.
  [[nodiscard]] virtual tick pass() = 0;

  /// Called behind each pass, when the strand is free again, in the same thread.
  virtual void follow_pass() = 0;

  /// Whether a pass is known to be needed at `when` or before. From any thread.
  [[nodiscard]] virtual bool needs_pass(tick when) const noexcept = 0;

protected:
  ~driven() = default;
};

}  // namespace asio_wheel::detail
