// L2 service: the lock's side of an operation with a deadline.
#include <asio_wheel/service/deadline_op.hpp>

#include <asio_wheel/service/wheel_errc.hpp>

#include <mutex>
#include <stdexcept>

namespace asio_wheel {

void fail_without_wheel()
{
  throw std::logic_error(
    "a deadline on an operation without an executor, for a handler without one: give the wheel, as "
    "in cancel_after(wheel, 5s), or put bind_executor and its kin inside: "
    "cancel_after(5s, bind_executor(ex, token))");
}

tick deadline_op::prepare(shard_set& shards, duration delay)
{
  const wheel_clock& clock = shards.clock();
  const tick when = clock.tick_for(clock.deadline_after(delay), delay);
  if (when != never) shards.prepare(when);
  return when;
}

tick deadline_op::prepare(shard_set& shards, time_point deadline)
{
  const tick when = shards.clock().tick_for(deadline);
  if (when != never) shards.prepare(when);
  return when;
}

deadline_op::deadline_op(complete_fn f, shard_set& shards, tick when, terms t) noexcept
  : wait_op(f, {}),
    home_(&shards.local()),
    terms_(t)
{
  if (when == never) hold_shards();
}

bool deadline_op::start(tick when) noexcept
{
  if (when == never) return !release();
  shard_set& set = shards();
  {
    shard_section section(*home_);
    if (ended_) {
      if (--holders_ != 0) return true;
      cut_link();
      return false;
    }
    try {
      filed_ = set.file(*home_, section, *this, when);
      if (!filed_) return true;
    } catch (...) {
      // The operation is under way, and without a deadline it might never end.
      section.reject(*this);
      return true;
    }
  }
  set.confirm(when);
  return true;
}

bool deadline_op::withdraw(settlement& later) noexcept
{
  return end(false, later);
}

bool deadline_op::leave(settlement& later) noexcept
{
  return end(true, later);
}

bool deadline_op::end(bool for_good, settlement& later) noexcept
{
  // Whoever else holds on may free the state as soon as the lock is released.
  shard& s = *home_;
  bool withdrawn = false;
  bool untold = false;
  bool alone = false;
  {
    const std::lock_guard lock(s);
    if (is_pending()) {
      untold = s.withdraw(*this);
      filed_ = false;
      withdrawn = true;
      --holders_;
    }
    alone = holders_ == 0;
    if (alone)
      cut_link();
    else
      ended_ = for_good;
  }
  if (withdrawn) s.set().count_ended(1);
  if (!untold) return alone;
  // Outside of the wheel's context that could be gone behind the handler, or wait for it in vain.
  if (s.set().native().running_in_this_thread())
    later.owe(s);
  else
    s.tell_driver();
  return alone;
}

bool deadline_op::release() noexcept
{
  const std::lock_guard lock(*home_);
  const bool last = --holders_ == 0 && ended_;
  if (last) cut_link();
  return last;
}

bool deadline_op::begin_firing(wait_outcome outcome) noexcept
{
  const std::lock_guard lock(*home_);
  if (ended_) return false;
  if (cause_ == cause::none) {
    switch (outcome) {
      case wait_outcome::expired:
      case wait_outcome::timed_out: cause_ = cause::deadline; break;
      case wait_outcome::rejected: cause_ = cause::refusal; break;
      case wait_outcome::cancelled:
      case wait_outcome::destroyed: cause_ = cause::other; break;
    }
  }
  return true;
}

error_code deadline_op::verdict() const noexcept
{
  if (!has_verdict()) return {};
  if (cause_ == cause::refusal) return wheel_errc::too_many_pending;
  return asio::error::timed_out;
}

/// Whether the deadline is in the wheel: filed and not due, nor cancelled or taken out otherwise.
bool deadline_op::is_pending() const noexcept
{
  return filed_ && home_->is_pending(*this) && outcome() == wait_outcome::expired &&
         !home_->is_closed();
}

void deadline_op::cut_link() noexcept
{
  if (!link_) return;
  link_->op_ = nullptr;
  link_->shard_.store(nullptr, std::memory_order_release);
  link_ = nullptr;
}

deadline_link::deadline_link(deadline_op& op) noexcept : shard_(op.home_), op_(&op)
{
  op.link_ = this;
}

deadline_link::~deadline_link()
{
  if (shard* const s = shard_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(*s);
    if (op_) op_->link_ = nullptr;
  }
}

deadline_op* deadline_link::hold(asio::cancellation_type_t type) noexcept
{
  shard* const s = shard_.load(std::memory_order_acquire);
  if (!s || type == asio::cancellation_type::none) return nullptr;
  const std::lock_guard lock(*s);
  if (!op_ || op_->ended_) return nullptr;
  if (op_->cause_ == deadline_op::cause::none) op_->cause_ = deadline_op::cause::other;
  ++op_->holders_;
  return op_;
}

}  // namespace asio_wheel
