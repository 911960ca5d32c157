// L3 roof: when a task of a scheduler runs.
#include <asio_wheel/keyed_scheduler.hpp>

namespace asio_wheel {

scheduled_task::scheduled_task(const wheel_place<>& place, duration delay, duration period,
                               std::size_t times)
  : shards_(&place.wheel.shards()),
    period_(period),
    times_(times),
    turn_(shards_->clock().deadline_after(delay)),
    timer_(place.wheel, place.executor)
{
  timer_.expires_at(turn_);
}

void scheduled_task::set_next_turn() noexcept
{
  turn_ = tick_after(turn_, period_, shards_->clock().now(), missed_tick::skip, duration{});
  timer_.expires_at(turn_);
}

}  // namespace asio_wheel
