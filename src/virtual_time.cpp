// L3 timers: stopping the clock and moving it from one due wait to the next.
#include <asio_wheel/asio.hpp>
#include <asio_wheel/virtual_time.hpp>

#include "detail/engine/core.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace asio_wheel {
namespace {

asio::io_context& context_of(const wheel_timer_service& wheel)
{
  const asio::any_io_executor ex = wheel.get_executor();
  const auto* typed = ex.target<asio::io_context::executor_type>();
  if (!typed)
    throw std::invalid_argument(
      "virtual_time: the wheel's executor is not that of an io_context; pass a function that runs "
      "the context's ready handlers");
  return asio::query(*typed, asio::execution::context);
}

/// The latest time of the clock: time_point::max() never comes.
constexpr detail::time_point end_of_time = detail::time_point::max() - detail::duration{1};

/// Puts the clock to rest on the way out, also after an exception.
struct [[nodiscard]] clock_in_motion {
  detail::wheel_core& core;
  ~clock_in_motion() { core.rest_clock(); }
};

}  // namespace

virtual_time::virtual_time(wheel_timer_service& wheel)
  : virtual_time(wheel, [&context = context_of(wheel)] {
      if (context.stopped()) context.restart();
      context.poll();
    })
{
  context_ = &context_of(wheel);
}

virtual_time::virtual_time(wheel_timer_service& wheel, std::function<void()> run_ready)
  : core_(&detail::core_of(wheel)),
    run_ready_(std::move(run_ready))
{
  if (!core_->stop_clock())
    throw std::logic_error("virtual_time: there is another one on this wheel");
}

virtual_time::~virtual_time()
{
  core_->start_clock();
}

virtual_time::time_point virtual_time::now() const noexcept
{
  return core_->clock.now();
}

std::size_t virtual_time::advance(detail::any_delay d)
{
  const clock_in_motion motion{*core_};
  const std::uint64_t before = core_->stats().expired;
  const time_point end = end_of(d);
  complete_until(end);
  core_->move_clock(end);
  return static_cast<std::size_t>(core_->stats().expired - before);
}

bool virtual_time::advance_to_next()
{
  const clock_in_motion motion{*core_};
  complete_until(now());
  if (!core_->step_clock(time_point::max())) return false;
  complete_until(now());
  return true;
}

virtual_time::passage virtual_time::advance_until_idle(detail::any_delay limit)
{
  const clock_in_motion motion{*core_};
  const std::uint64_t before = core_->stats().expired;
  const time_point begin = now();
  const time_point end = end_of(limit);
  complete_until(end);
  passage p;
  p.idle = core_->is_at_rest();
  if (!p.idle) core_->move_clock(end);
  p.expired = static_cast<std::size_t>(core_->stats().expired - before);
  p.time = now() - begin;
  if (p.idle) {
    // The timer may still wait for a deadline that has come. Its wait counts as work.
    core_->rest_clock();
    run_ready_();
    p.stuck = core_->pending();
    p.blocked = context_ ? !context_->stopped() : p.stuck != 0;
  }
  return p;
}

void virtual_time::align()
{
  advance(core_->clock.time_of(core_->clock.tick_ceil(now())) - now());
}

/// Where the clock stands after a move by `d`.
virtual_time::time_point virtual_time::end_of(duration d) const noexcept
{
  return d > duration::zero() ? std::min(core_->clock.deadline_after(d), end_of_time) : now();
}

void virtual_time::complete_until(time_point limit)
{
  do run_ready_();
  while (core_->step_clock(limit));
}

}  // namespace asio_wheel
