// L2 engine: the lock's side of an operation with a deadline.
#include <asio_wheel/detail/engine/deadline_wait.hpp>

#include <asio_wheel/detail/engine/wait_handler.hpp>

#include "core.hpp"

#include <chrono>
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

const asio::any_io_executor& deadline_wait::context_executor() const noexcept
{
  return shard_->core.executor;
}

asio::execution_context& deadline_wait::context() const noexcept
{
  return shard_->core.context;
}

bool deadline_wait::is_over() const noexcept
{
  return has_ended() || !shard::is_reachable(*this);
}

/// Gives up the hold on an operation that has ended. Returns true if the state is now the caller's.
/// Requires the lock.
bool deadline_wait::end_first() noexcept
{
  if (--holders_ != 0) return false;
  shard::unlink(*this);
  return true;
}

bool deadline_wait::start_guarded() noexcept
{
  shard& sh = *shard_;
  sh.lock();
  if (holders_ != 1 || has_ended() || !guard_->is_filed_by(until_)) [[unlikely]]
    return start_first(sh);
  holders_ = 0;
  guard_->at().assert_held();  // `sh`
  guard_->insert(*this);
  sh.unlock();
  return true;
}

bool deadline_wait::end_guarded() noexcept
{
  shard& sh = *shard_;
  sh.lock();
  if (state_ != wait_state::guarded || holders_ != 0) [[unlikely]] {
    sh.unlock();
    return false;
  }
  guard_->at().assert_held();  // `sh`
  guard_->erase(*this);
  sh.count_begun();
  shard::unlink(*this);
  sh.unlock();
  sh.core.under_way.note_begun();
  return true;
}

/// start_guarded() where filing may be needed. Takes over the lock.
bool deadline_wait::start_first(shard& sh) noexcept
{
  maybe_tick filed;
  intrusive_ptr<wheel_core> to_wake;
  {
    shard_lock lock(sh, std::adopt_lock);
    if (has_ended()) return !end_first();
    --holders_;
    if (until_ == guarded_by::no_deadline) return true;
    guard_->at().assert_held();  // `sh`
    filed = guard_->add(lock, *this);
    if (filed) to_wake = &core();
  }
  if (to_wake) to_wake->wake_at(*filed);
  return true;
}

bool deadline_wait::start(tick when) noexcept
{
  shard& sh = *shard_;
  wheel_core& c = sh.core;
  bool filed = false;
  {
    shard_lock lock(sh);
    if (has_ended()) return !end_first();
    if (when == never || sh.is_closed()) {
      c.keep_for(*this);
    } else {
      try {
        filed = c.file(lock, *this, when);
      } catch (...) {
        // The operation is under way, and might never end without a deadline.
        lock.unfinished().reject(*this);
      }
    }
    --holders_;
  }
  if (filed) c.wake_at(when);
  return true;
}

deadline_wait::departure deadline_wait::leave(operation_end how) noexcept
{
  shard& sh = *shard_;
  wheel_core& c = sh.core;
  c.under_way.note_begun();
  sh.lock();
  bool is_last = true;
  if (state_ == wait_state::filed && holders_ == 0) [[likely]] {
    if (sh.drop_filed(*this)) c.count_ended(1);
    shard::unlink(*this);
  } else {
    is_last = leave_unfiled(sh, how);
  }
  shard* to_tell_of = nullptr;
  if (sh.has_unneeded()) {
    // Outside the wheel's context, the core may go as soon as the lock is released. A context that
    // is gone cannot be asked.
    if (sh.is_closed() || !c.native.running_in_this_thread()) {
      tell_from_outside(sh);
      return {is_last};
    }
    to_tell_of = &sh;
  }
  sh.unlock();
  return {is_last, to_tell_of};
}

/// leave() of a deadline that is not filed, or has a holder. Returns true if the state is the
/// caller's.
bool deadline_wait::leave_unfiled(shard& sh, operation_end how) noexcept
{
  if (sh.drop_deadline(*this)) sh.core.count_ended(1);
  sh.count_begun();
  if (guard_) guard_->set_ended();
  if (holders_ == 0) {
    shard::unlink(*this);
    return true;
  }
  sh.core.keep_for(*this);
  end_ = how;
  return false;
}

/// Tells the driver from a thread outside the context.
void deadline_wait::tell_from_outside(shard& sh) noexcept
{
  const intrusive_ptr<wheel_core> kept(&sh.core);
  sh.unlock();
  tell_driver(sh);
}

bool deadline_wait::leave_and_tell(operation_end how) noexcept
{
  const departure d = leave(how);
  if (d.to_tell_of) tell_driver(*d.to_tell_of);
  return d.is_last;
}

deadline_wait* deadline_wait::hold(wait_link& link, asio::cancellation_type_t type) noexcept
{
  shard* const sh = link.at();
  if (!sh || type == asio::cancellation_type::none) return nullptr;
  const locked lock(*sh);
  auto* const op = static_cast<deadline_wait*>(link.wait());
  if (!op || op->has_ended()) return nullptr;
  op->cancelled_outside_ = true;
  ++op->holders_;
  return op;
}

bool deadline_wait::release() noexcept
{
  const locked lock(*shard_);
  const bool last = --holders_ == 0 && has_ended();
  if (last) shard::unlink(*this);
  return last;
}

deadline_wait::firing deadline_wait::check() noexcept
{
  const locked lock(*shard_);
  return is_over() ? firing::off : firing::later;
}

deadline_wait::firing deadline_wait::begin(time_point taken_up) noexcept
{
  maybe_tick refiled;
  intrusive_ptr<wheel_core> to_wake;
  {
    const locked lock(*shard_);
    if (is_over()) return firing::off;
    if (cancelled_outside_) {
      cancelled_outside_ = false;
      return firing::later;
    }
    using guarding = operation_guard::guarding;
    const auto guarded = guard_ ? guard_->guard_again(*this, refiled) : guarding::expired;
    if (guarded == guarding::goes_on) {
      rounds_ = 0;
      ticks_ = 0;
      doubt_ = 0;
      has_met_handler_ = false;
      if (refiled) to_wake = &core();
    } else {
      const wait_outcome outcome = shard_->begin(*this, taken_up, refiled);
      if (outcome == wait_outcome::expired) core().count_ended(1);
      if (outcome == wait_outcome::rejected || guarded == guarding::rejected)
        replacement_ = wait_outcome::rejected;
      else if (outcome == wait_outcome::expired && report_ != deadline_report::aborted)
        replacement_ = wait_outcome::timed_out;
      return firing::now;
    }
  }
  if (to_wake) to_wake->wake_at(*refiled);
  return firing::off;
}

step deadline_wait::first_step(time_point taken_up, asio::any_io_executor strand) noexcept
{
  wheel_core& c = core();
  const bool has_peers = c.note_thread();
  // The handler of a wait may have destroyed the object just before.
  if (ticks_ == 0 && c.has_sent_lately()) doubt_ = c.ticks_in_doubt;
  // With one thread, a handler anywhere may destroy the object.
  if (has_peers && strand && is_of_context(strand, c.context))
    place_ = c.under_way.add(std::move(strand));
  return {step_kind::fire, taken_up, place_ != 0 ? 0 : c.handlers_begun()};
}

/// Returns true if any handler has begun since the step was sent, or since the last call.
bool deadline_wait::has_any_begun(step& deadline) const noexcept
{
  const std::uint64_t begun = core().handlers_begun();
  return begun != std::exchange(deadline.begun, begun);
}

deadline_wait::firing deadline_wait::decide(step& deadline, bool is_of_other_context) noexcept
{
  constexpr int most_rounds = 256, rounds_at_once = 8, most_ticks = 512;
  wheel_core& c = core();
  if (check() == firing::off) {
    c.under_way.remove(place_);
    return firing::off;
  }
  const bool has_begun = place_ != 0 ? c.under_way.take_begun(place_) : has_any_begun(deadline);
  const bool has_peers = !is_of_other_context && c.note_thread();
  const bool is_clear = rounds_ != 0 && !has_begun;
  if (rounds_ == 0) ++rounds_;
  if (has_begun) {
    ++rounds_;
    // Once, or a strand that is never idle would hold it up without end.
    if (!std::exchange(has_met_handler_, true)) doubt_ = c.ticks_in_doubt;
  }
  const bool wants_tick =
    is_clear ? has_peers && doubt_ != 0
             : rounds_ % rounds_at_once == 0 && ticks_ < most_ticks && c.has_calls_ahead();
  if (wants_tick && !is_of_other_context && wait_for_next_tick(is_clear)) return firing::kept;
  if (!is_clear && rounds_ < most_rounds) return firing::later;
  c.under_way.remove(place_);
  return begin(deadline.taken_up);
}

/// Leaves a deadline on its way to the next tick. Returns false, with its rounds as they were, if
/// it does not wait for one.
bool deadline_wait::wait_for_next_tick(bool is_clear) noexcept
{
  constexpr std::chrono::milliseconds longest{4};
  if (core().options.tick > longest || core().clock.is_stopped()) return false;
  const auto rounds = std::exchange(rounds_, std::uint16_t{0});  // before others may have the state
  ++ticks_;
  if (is_clear) --doubt_;
  if (keep(step_kind::fire)) return true;
  rounds_ = rounds;
  return false;
}

std::optional<wait_outcome> deadline_wait::take_completion() noexcept
{
  const locked lock(*shard_);
  if (told_ == told::instead) return {};
  told_ = told::of_completion;
  return replacement_;
}

error_code deadline_wait::guards_error(wait_outcome how) noexcept
{
  return how == wait_outcome::timed_out ? guard_->note_timeout(cause_) : to_error(how);
}

bool deadline_wait::goes_on() noexcept
{
  const locked lock(*shard_);
  return !has_ended();
}

bool deadline_wait::leave_alone() noexcept
{
  const locked lock(*shard_);
  if (has_ended() || told_ != told::nothing) return false;
  told_ = told::instead;
  shard::unlink(*this);
  return true;
}

bool deadline_wait::requeue() noexcept
{
  shard_lock lock(*shard_);
  if (has_ended()) return end_first();
  --holders_;
  if (is_over()) return false;
  if (!shard_->is_closed())
    lock.unfinished().requeue_deadline(*this);
  else if (shard_->drop(*this))
    core().count_ended(1);
  return false;
}

bool deadline_wait::keep(step_kind refused) noexcept
{
  wheel_core& c = core();
  if (refused == step_kind::fire) c.under_way.remove(place_);
  {
    const locked lock(*shard_);
    if (shard_->is_closed()) return false;
    if (refused == step_kind::deliver) {
      shard_->keep_finished(*this);
    } else {
      if (refused == step_kind::fire ? is_over() : has_ended()) return false;
      --holders_;
      shard_->keep_refused(*this);
    }
  }
  c.retry_later();
  return true;
}

void deadline_wait::drop_deadline() noexcept
{
  core().under_way.remove(place_);
  const locked lock(*shard_);
  if (shard_->drop(*this)) core().count_ended(1);
}

}  // namespace asio_wheel::detail
