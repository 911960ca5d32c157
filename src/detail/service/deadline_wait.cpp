// L2 service: the lock's side of an operation with a deadline.
#include <asio_wheel/detail/service/deadline_wait.hpp>

#include <asio_wheel/detail/service/wait_handler.hpp>

#include "core.hpp"

#include <mutex>
#include <stdexcept>
#include <utility>

namespace asio_wheel::detail {

void fail_without_wheel()
{
  throw std::logic_error(
    "a deadline on an operation without an executor, for a handler without one: give the wheel, as "
    "in cancel_after(wheel, 5s), or put bind_executor and its kin inside: "
    "cancel_after(5s, bind_executor(ex, token))");
}

deadline_filing::deadline_filing(wheel_core& c, duration delay) noexcept
  : at(c.shards.local()),
    when(c.clock.tick_for(delay))
{}

deadline_filing::deadline_filing(wheel_core& c, time_point deadline) noexcept
  : at(c.shards.local()),
    when(c.clock.tick_for(deadline))
{}

bool deadline_wait::is_over() const noexcept
{
  return has_ended() || !shard::is_reachable(*this);
}

/// Gives up the hold on an operation that has ended. Whether the state is now the caller's.
/// Requires the lock.
bool deadline_wait::end_first() noexcept
{
  if (--holders_ != 0) return false;
  shard::cut_link(*this);
  return true;
}

bool deadline_wait::start_guarded() noexcept
{
  home& h = *home_;
  h.lock();
  if (holders_ != 1 || has_ended() || !guard_->is_filed_by(until_)) [[unlikely]]
    return start_first();
  holders_ = 0;
  guard_->insert(*this);
  h.unlock();
  return true;
}

bool deadline_wait::end_guarded() noexcept
{
  home& h = *home_;
  h.lock();
  if (state_ != wait_state::guarded || holders_ != 0) [[unlikely]] {
    h.unlock();
    return false;
  }
  guard_->erase(*this);
  h.count_begun();
  shard::cut_link(*this);
  h.unlock();
  return true;
}

/// start_guarded(), with the lock taken.
bool deadline_wait::start_first() noexcept
{
  tick filed = no_tick;
  intrusive_ptr<wheel_core> to_wake;
  {
    section s(*home_, std::adopt_lock);
    if (has_ended()) return !end_first();
    --holders_;
    filed = guard_->add(s, *this);
    if (filed != no_tick) to_wake = &core();
  }
  if (to_wake) to_wake->wake_at(filed);
  return true;
}

bool deadline_wait::start(tick when) noexcept
{
  home& h = *home_;
  wheel_core& c = h.core;
  bool filed = false;
  {
    section s(h);
    if (has_ended()) return !end_first();
    if (when == never || h.is_closed()) {
      c.keep_for(*this);
    } else {
      try {
        filed = c.file(s, *this, when);
      } catch (...) {
        // The operation is under way, and without a deadline it might never end.
        s.unfinished().reject(*this);
      }
    }
    --holders_;
  }
  if (filed) c.wake_at(when);
  return true;
}

deadline_wait::departure deadline_wait::leave(operation_end how) noexcept
{
  home& h = *home_;
  h.lock();
  bool is_last = true;
  if (state_ == wait_state::filed && holders_ == 0) [[likely]] {
    if (h.drop_filed(*this)) h.core.count_ended(1);
    shard::cut_link(*this);
  } else {
    is_last = leave_unfiled(how);
  }
  home* to_tell_of = nullptr;
  if (h.has_unneeded()) {
    // Outside of the wheel's context, that may go as soon as the lock is released. A context that
    // is gone can not be asked.
    if (h.is_closed() || !h.core.native.running_in_this_thread()) {
      tell_from_outside(h);
      return {is_last};
    }
    to_tell_of = &h;
  }
  h.unlock();
  return {is_last, to_tell_of};
}

/// leave() of one that is not in the wheel, or has a holder. Requires the lock. Whether the state
/// is the caller's.
bool deadline_wait::leave_unfiled(operation_end how) noexcept
{
  home& h = *home_;
  if (h.drop_deadline(*this)) h.core.count_ended(1);
  h.count_begun();
  if (guard_) guard_->set_ended();
  if (holders_ == 0) {
    shard::cut_link(*this);
    return true;
  }
  h.core.keep_for(*this);
  end_ = how;
  return false;
}

/// Tells the driver in a thread that the context does not run. Releases the lock.
void deadline_wait::tell_from_outside(home& h) noexcept
{
  const intrusive_ptr<wheel_core> kept(&h.core);
  h.unlock();
  wheel_core::tell_driver(h);
}

bool deadline_wait::leave_and_tell(operation_end how) noexcept
{
  const departure d = leave(how);
  if (d.to_tell_of) wheel_core::tell_driver(*d.to_tell_of);
  return d.is_last;
}

deadline_wait* deadline_wait::hold(slot_link& link, asio::cancellation_type_t type) noexcept
{
  home* const h = link.at();
  if (!h || type == asio::cancellation_type::none) return nullptr;
  const std::lock_guard lock(*h);
  auto* const op = static_cast<deadline_wait*>(link.wait());
  if (!op || op->has_ended()) return nullptr;
  op->cancelled_outside_ = true;
  ++op->holders_;
  return op;
}

bool deadline_wait::release() noexcept
{
  const std::lock_guard lock(*home_);
  const bool last = --holders_ == 0 && has_ended();
  if (last) shard::cut_link(*this);
  return last;
}

deadline_wait::firing deadline_wait::look() noexcept
{
  const std::lock_guard lock(*home_);
  return is_over() ? firing::off : firing::later;
}

deadline_wait::firing deadline_wait::begin(time_point taken_up) noexcept
{
  tick renewed = no_tick;
  intrusive_ptr<wheel_core> to_wake;
  {
    const std::lock_guard lock(*home_);
    if (is_over()) return firing::off;
    if (cancelled_outside_) {
      cancelled_outside_ = false;
      return firing::later;
    }
    if (guard_ && guard_->guard_again(*this, renewed)) {
      if (renewed != no_tick) to_wake = &core();
    } else {
      const wait_outcome outcome = home_->begin(*this, taken_up, renewed);
      if (outcome == wait_outcome::expired) core().count_ended(1);
      if (outcome == wait_outcome::rejected)
        verdict_ = outcome;
      else if (outcome == wait_outcome::expired && report_ != deadline_report::aborted)
        verdict_ = wait_outcome::timed_out;
      return firing::now;
    }
  }
  if (to_wake) to_wake->wake_at(renewed);
  return firing::off;
}

wait_outcome deadline_wait::ask_verdict() const noexcept
{
  const std::lock_guard lock(*home_);
  return verdict_;
}

error_code deadline_wait::guards_error(wait_outcome verdict) noexcept
{
  return verdict == wait_outcome::timed_out ? guard_->note_timeout(cause_) : to_error(verdict);
}

bool deadline_wait::goes_on() noexcept
{
  const std::lock_guard lock(*home_);
  return !has_ended();
}

bool deadline_wait::leave_alone() noexcept
{
  const std::lock_guard lock(*home_);
  if (has_ended()) return false;
  shard::cut_link(*this);
  return true;
}

bool deadline_wait::requeue() noexcept
{
  section s(*home_);
  if (has_ended()) return end_first();
  --holders_;
  if (is_over()) return false;
  if (!home_->is_closed())
    s.unfinished().requeue_deadline(*this);
  else if (home_->drop(*this))
    core().count_ended(1);
  return false;
}

bool deadline_wait::keep_refused() noexcept
{
  wheel_core& c = core();
  {
    const std::lock_guard lock(*home_);
    if (is_over() || home_->is_closed()) return false;
    --holders_;
    home_->keep_refused(*this);
  }
  c.retry_later();
  return true;
}

bool deadline_wait::keep_finished() noexcept
{
  wheel_core& c = core();
  {
    const std::lock_guard lock(*home_);
    if (home_->is_closed()) return false;
    home_->keep_finished(*this);
  }
  c.retry_later();
  return true;
}

void deadline_wait::drop() noexcept
{
  const std::lock_guard lock(*home_);
  if (home_->drop(*this)) core().count_ended(1);
}

}  // namespace asio_wheel::detail
