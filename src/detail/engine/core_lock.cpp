// L2 engine: cancels under a shard's lock, also by a handler's slot, and what follows when the lock
// is released.
#include "core.hpp"

namespace asio_wheel::detail {

shard_lock::shard_lock(shard& sh) noexcept : at_(sh)
{
  sh.lock();
}

shard_lock::shard_lock(shard& sh, std::adopt_lock_t) noexcept : at_(sh) {}

shard_lock::~shard_lock()
{
  if (unfinished_)
    finish(at_, destroyed_);
  else
    at_.unlock();
}

/// Releases the lock, and does the rest.
void shard_lock::finish(shard& sh, wait_op* destroyed) noexcept
{
  wheel_core& c = sh.core;
  const bool post = sh.has_ended() && sh.ended_delivery.request();
  const bool fire = sh.has_deadlines() && c.deadline_delivery_.request();
  const maybe_tick unneeded = sh.take_unneeded();
  sh.unlock();

  if (fire) c.post_deadlines();
  if (post) c.post_ended(sh);
  if (unneeded) c.cancel_wake_up(sh, *unneeded);
  // The core may go with the wait.
  if (destroyed) destroyed->ask(sh, wait_request::destroy());
}

std::size_t shard_lock::count(std::size_t cancelled) noexcept
{
  if (cancelled == 0) return 0;
  at().core.count_ended(cancelled);
  // A delivery on its way will find them.
  unfinished_ |= !at().ended_delivery.is_requested() || at().has_unneeded();
  return cancelled;
}

std::size_t shard_lock::cancel(wait_op& op) noexcept
{
  return count(at().cancel(op));
}

std::size_t shard_lock::cancel(timer_wait_list& waits, bool is_local) noexcept
{
  return count(at().cancel(waits, is_local));
}

std::size_t shard_lock::cancel_one(timer_wait_list& waits) noexcept
{
  return count(at().cancel_one(waits));
}

std::size_t shard_lock::cancel_all() noexcept
{
  return count(at().cancel_all());
}

void shard_lock::file_due(wait_op& op) noexcept
{
  at().core.count_started(1);
  unfinished().file_due(op);
}

shard& shard_lock::unfinished() noexcept
{
  unfinished_ = true;
  return at_;
}

void shard_lock::destroy(wait_op& op) noexcept
{
  unfinished_ = true;
  destroyed_ = &op;
}

wait_link::~wait_link()
{
  shard* const sh = at();
  if (!sh) return;
  const locked lock(*sh);
  if (wait()) shard::slot_unlinked(*wait());
}

void cancel_link::operator()(asio::cancellation_type_t type)
{
  shard* const sh = at();
  if (!sh || type == asio::cancellation_type::none) return;
  shard_lock lock(*sh);
  sh->apply_deferred_cancels();
  if (wait()) lock.cancel(*wait());
}

}  // namespace asio_wheel::detail
