// L3 roof: the turns of a task.
#include <asio_wheel/detail/roof/scheduled_task.hpp>

#include <asio_wheel/detail/roof/tick_after.hpp>

namespace asio_wheel::detail {

scheduled_task::scheduled_task(const wheel_place<>& place, duration delay, duration period,
                               std::size_t times)
  : core_(&core_of(place.wheel)),
    period_(period),
    times_(times),
    turn_(core_->clock().deadline_after(delay)),
    timer_(place.wheel, place.executor)
{
  timer_.expires_at(turn_);
}

void scheduled_task::set_next_turn() noexcept
{
  turn_ = tick_after(turn_, period_, core_->clock().now(), missed_tick::skip, duration{});
  timer_.expires_at(turn_);
}

}  // namespace asio_wheel::detail
