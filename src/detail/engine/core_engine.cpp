// L2 engine: answers engine.hpp.
#include <asio_wheel/detail/engine/engine.hpp>

#include <asio_wheel/wheel_errc.hpp>

#include "core.hpp"

namespace asio_wheel::detail {

void intrusive_ptr_add_ref(const wheel_core* c) noexcept
{
  const intrusive_ref_counter<wheel_core>* const counted = c;
  intrusive_ptr_add_ref(counted);
}

void intrusive_ptr_release(const wheel_core* c) noexcept
{
  const intrusive_ref_counter<wheel_core>* const counted = c;
  intrusive_ptr_release(counted);
}

wheel_core& core_of(const shard& sh) noexcept
{
  return sh.core;
}

const asio::any_io_executor& wheel_executor(const wheel_core& c) noexcept
{
  return c.executor;
}

time_point deadline_after(const wheel_core& c, duration delay) noexcept
{
  return c.clock.deadline_after(delay);
}

time_point now_plus(const wheel_core& c, duration delay) noexcept
{
  return sum(c.clock.now(), delay);
}

bool has_passed(const wheel_core& c, time_point deadline) noexcept
{
  return deadline <= c.clock.now();
}

void start_wait(wheel_core& c, wait_op& op, duration delay)
{
  c.start(op, c.clock.tick_for(delay));
}

void start_wait(wheel_core& c, wait_op& op, time_point deadline)
{
  c.start(op, c.clock.tick_for(deadline));
}

wait_outcome begin_wait(wait_op& op, shard& sh, time_point taken_up) noexcept
{
  maybe_tick refiled;
  wait_outcome outcome{};
  {
    const locked lock(sh);
    sh.note_arrived();
    outcome = sh.begin(op, taken_up, refiled);
  }
  sh.core.under_way.note_begun();
  if (was_pending(outcome)) sh.core.count_ended(1);
  if (refiled) sh.core.wake_at(*refiled);
  return outcome;
}

void drop_wait(wait_op& op, shard& sh) noexcept
{
  const locked lock(sh);
  sh.note_arrived();
  if (sh.drop(op)) sh.core.count_ended(1);
}

bool keep_refused_wait(wait_op& op, shard& sh) noexcept
{
  {
    const locked lock(sh);
    if (sh.is_closed()) return false;
    sh.note_arrived();
    sh.keep_refused(op);
  }
  sh.core.retry_later();
  return true;
}

std::atomic<std::size_t>& abandoned_on(wheel_core& c) noexcept
{
  return c.abandoned;
}

void tell_driver(shard& sh) noexcept
{
  if (!sh.has_unneeded()) return;
  sh.lock();
  const maybe_tick unneeded = sh.take_unneeded();
  sh.unlock();
  if (unneeded) sh.core.cancel_wake_up(sh, *unneeded);
}

void describe_wait(shard& sh, const std::type_info* handler) noexcept
{
  sh.describe(handler);
}

error_code too_many_pending() noexcept
{
  return wheel_errc::too_many_pending;
}

posting_guard::posting_guard(wheel_core& c) noexcept
  : core_(c.posting_gate.try_lock_shared() ? &c : nullptr)
{}

posting_guard::~posting_guard()
{
  if (core_) core_->posting_gate.unlock_shared();
}

}  // namespace asio_wheel::detail
