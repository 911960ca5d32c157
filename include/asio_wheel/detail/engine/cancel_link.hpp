// L2 engine: what a wait leaves in its handler's cancellation slot.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

namespace asio_wheel::detail {

/// The slot's end of the tie between a wait and a slot. Either may go first.
class ASIO_WHEEL_EXPORT slot_link : public wait_link {
protected:
  slot_link() = default;
  ~slot_link();
};

/// Cancels the wait, if its handler has not begun. A wait has no partial effects to keep, so it
/// grants every type of cancellation.
class ASIO_WHEEL_EXPORT cancel_link : public slot_link {
public:
  void operator()(asio::cancellation_type_t type);
};

}  // namespace asio_wheel::detail
