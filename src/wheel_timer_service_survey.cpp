// L2 engine: the service's surveys of its waits, linked only if used.
#include <asio_wheel/wheel_timer_service.hpp>

#include "detail/engine/core.hpp"

namespace asio_wheel {

pending_handlers wheel_timer_service::pending_by_handler() const
{
  return core_->pending_by_handler();
}

std::optional<wheel_timer_service::time_point> wheel_timer_service::next_expiry() const
{
  return core_->next_expiry();
}

}  // namespace asio_wheel
