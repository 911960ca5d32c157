// L2 engine: starts waits with a moving deadline, and files them earlier.
#include <asio_wheel/detail/engine/lazy_state.hpp>

#include "lazy_state.hpp"

#include <algorithm>

namespace asio_wheel::detail {

void lazy_state::start(lazy_wait_op& op)
{
  op.set_deadline(*this);
  wheel_core& c = core();
  go_here();
  tick when;
  {
    shard_lock lock = enter();
    when = present_tick();
    if (!file(lock, op, when)) return;
  }
  c.wake_at(when);
}

tick lazy_state::present_tick() const noexcept
{
  const wheel_clock& clock = core().clock;
  return was_ahead() ? clock.tick_ceil(deadline()) : clock.tick_for(deadline());
}

maybe_tick lazy_state::refile_earlier(const shard_lock& lock) noexcept
{
  lock.at().apply_deferred_cancels();
  if (waits_.empty()) return {};
  const tick when = present_tick();
  maybe_tick wake;
  waits_.for_each(
    [&](timer_wait_op& op) { wake = std::min(wake, lock.at().refile_earlier(op, when)); });
  return wake;
}

void lazy_state::adopt_waits() noexcept
{
  waits_.for_each(
    [this](timer_wait_op& op) { static_cast<lazy_wait_op&>(op).set_deadline(*this); });
}

maybe_tick guarding_state::refile_earlier() noexcept
{
  // This object may be gone after the waits were filed earlier, and so may the waits.
  const guard_ptr g(guard_.load());
  const maybe_tick when = lazy_state::refile_earlier(enter());
  return g ? std::min(when, g->refile_earlier()) : when;
}

guard_ptr guarding_state::make_guard()
{
  guard_ptr made(new operation_guard(core(), this));
  operation_guard* other = nullptr;
  if (!guard_.compare_exchange_strong(other, made.get())) return other;
  intrusive_ptr_add_ref(made.get());
  return made;
}

void guarding_state::retire() noexcept
{
  cancel();
  const guard_ptr g(guard_.exchange(nullptr), false);
  if (g) g->close();
}

void guarding_state::take_guard(guarding_state& other) noexcept
{
  operation_guard* const g = other.guard_.exchange(nullptr);
  if (g) g->move_to(*this);
  guard_ = g;
}

}  // namespace asio_wheel::detail
