// L2 engine: the transitions of a wait's life, under its shard's lock.
#include "shard.hpp"

#include <asio_wheel/detail/engine/op_memory.hpp>

#include "../base/memory.hpp"
#include "probe.hpp"

#include <algorithm>
#include <cstddef>

namespace asio_wheel::detail {
namespace {

/// The sequence of the latest wait that this thread started, in any wheel.
constinit thread_local std::uint64_t this_thread_sequence = 0;

}  // namespace

shard::shard(wheel_core& c, std::size_t n, wheel_geometry geometry, const wheel_clock& clock)
  : wheel_(geometry),
    clock_(clock),
    core(c),
    number(n)
{}

// file

tick shard::file(wait_op& op, tick when)
{
  const tick wake = insert(op, when);
  set_sequence(op);
  set_state(op, wait_state::filed);

  if (op.linked_) link_of(op).connect(*this, op);
  ASIO_WHEEL_PROBE(start, &op, op.ask_, when);
  return wake;
}

/// Counts a start, and numbers it.
void shard::set_sequence(wait_op& op) noexcept
{
  ++started_;
  // A Lamport clock: later than this shard's previous start and than this thread's. So the waits
  // that a thread starts carry growing sequence numbers, whichever shards they go to.
  sequence_ = this_thread_sequence = std::max(sequence_, this_thread_sequence) + 1;
  op.sequence_ = sequence_ & wait_op::last_sequence;
}

void shard::file_due(wait_op& op) noexcept
{
  set_sequence(op);
  put_ended(op, wait_state::requeued);
}

void shard::put_ended(wait_op& op, wait_state s) noexcept
{
  set_state(op, s);
  (op.shared_ ? deadlines_ : ended_).push_back(op);
}

/// Returns a tick to wake up at.
tick shard::insert(wait_op& op, tick when)
{
  const tick wake = wheel_.insert(op, when);
  const maybe_tick unneeded = unneeded_.load(std::memory_order_relaxed);
  if (wake < later_) [[unlikely]] {
    const maybe_tick next = next_.load(std::memory_order_relaxed);
    if (wake < next) {
      later_ = unneeded ? wake : next;
      // Before this thread reads when the driver wakes up: if the driver misses this wait, the
      // thread requests a wake-up.
      next_.store(wake, std::memory_order_seq_cst);
    } else if (next != unknown) {
      later_ = next;
    }
  }
  // The driver wakes up in time for this wait, so its wake-up is needed again.
  if (unneeded && wheel_.wake_of(op) <= *unneeded) unneeded_.store({}, std::memory_order_relaxed);
  return wake;
}

void shard::reject(wait_op& op) noexcept
{
  ++rejected_;
  unlink_all(op);
  put_ended(op, wait_state::rejected);
}

maybe_tick shard::refile_earlier(timer_wait_op& op, tick when) noexcept
{
  const tick due = when != at_once ? when : clock_.tick_floor(clock_.now());
  if (op.state_ != wait_state::filed || is_all_cancelled(op) || wheel_.is_due(op) ||
      op.due() <= due)
    return {};
  erase(op);
  const tick wake = insert(op, due);  // has memory: an entry was just erased
  return when != at_once ? wake : at_once;
}

// rest

void shard::start_resting(timer_wait_op& op) noexcept
{
  resting_.push_back(op);
  op.rests_ = true;
  ++number_resting_;
  ++deadlines_met_;
  note_if_idle();
}

void shard::stop_resting(timer_wait_op& op) noexcept
{
  unlist_resting(op);
  ++started_;
}

void shard::erase_resting(timer_wait_op& op) noexcept
{
  unlist_resting(op);
  erase(op);
  set_state(op, wait_state::none);
}

timer_wait_op* shard::pop_resting() noexcept
{
  timer_wait_op* const op = resting_.front();
  if (!op) return nullptr;
  erase_resting(*op);
  static_cast<lazy_wait_op*>(op)->deadline_->set_unfiled();
  return op;
}

void shard::unlist_resting(timer_wait_op& op) noexcept
{
  timer_wait_list::erase(op);
  op.next = nullptr;
  op.rests_ = false;
  --number_resting_;
}

/// `never` is later than any tick noted here.
void shard::note_if_idle() noexcept
{
  if (is_idle() && !has_unneeded()) unneeded_.store(never, std::memory_order_relaxed);
}

// expire

bool shard::advance(tick now) noexcept
{
  apply_deferred_cancels();
  set_next(wheel_.advance(now));
  return wheel_.has_due();
}

/// Notes when the wheel has something to do next, for a driver that is about to ask.
void shard::set_next(maybe_tick next) noexcept
{
  unneeded_.store({}, std::memory_order_relaxed);
  note_if_idle();
  later_ = next;
  next_.store(next, std::memory_order_seq_cst);
}

void shard::rewind(tick now) noexcept
{
  apply_deferred_cancels();
  if (now < wheel_.now()) wheel_.rewind(now);
  set_next(wheel_.next_tick());
}

bool shard::has_due(cancels_applied) const noexcept
{
  return wheel_.has_due();
}

due_key shard::first_due(cancels_applied) const noexcept
{
  const auto& op = static_cast<const wait_op&>(*wheel_.front_due());
  return {op.due(), op.sequence_};
}

bool shard::is_deadline_due(cancels_applied) const noexcept
{
  return static_cast<const wait_op&>(*wheel_.front_due()).shared_;
}

/// Files a lazy wait again if its deadline has moved to later.
shard::refiling shard::refile_later(lazy_wait_op& op, time_point now, maybe_tick& refiled) noexcept
{
  const time_point deadline = op.deadline_->deadline();
  if (deadline <= now) return refiling::not_needed;
  if (closed_) return refiling::closed;
  const tick when = clock_.tick_ceil(deadline);
  try {
    refiled = std::min(refiled, maybe_tick(insert(op, when)));
  } catch (...) {
    return refiling::out_of_memory;  // another wait has taken it
  }
  set_state(op, wait_state::filed);
  op.deadline_->set_filed_for(deadline);
  return refiling::done;
}

// begin

wait_op* shard::pop_due(cancels_applied applied, time_point now, wait_request& request,
                        maybe_tick& refiled) noexcept
{
  for (const wheel_entry* e : wheel_.fresh_due()) {
    if (!e) continue;
    const auto& op = static_cast<const wait_op&>(*e);
    // The memory that the call and begin() need beside the wait's first line.
    if (op.large_) prefetch(reinterpret_cast<const std::byte*>(&op) + op_line);
    if (!op.of_timer_) continue;
    const auto& of_timer = static_cast<const timer_wait_op&>(op);
    prefetch(of_timer.next);
    prefetch(of_timer.prev);
  }
  auto* const op = static_cast<wait_op*>(wheel_.pop_due());
  if (!op) return nullptr;
  if (op->foreign_ || op->shared_) {
    if (op->lazy_) {
      // Another thread may have made a pass after `now`.
      const time_point present = std::max(now, clock_.time_of(wheel_.now()));
      if (refile_later(static_cast<lazy_wait_op&>(*op), present, refiled) == refiling::done)
        return nullptr;
    }
    request = send(*op);
    return op;
  }
  const wait_outcome outcome = decide(applied, *op, now, refiled);
  if (outcome == wait_outcome::none) return nullptr;
  ++begun_;
  request = outcome;
  return op;
}

/// Sends a wait to where its end is decided: mostly to its handler's executor.
wait_request shard::send(wait_op& op) noexcept
{
  if (op.state_ == wait_state::filed || op.state_ == wait_state::requeued)
    set_state(op, wait_state::sent);
  if (op.shared_)
    ++static_cast<guarded_wait&>(op).holders_;
  else
    ++on_their_way_;
  return wait_request::send();
}

wait_outcome shard::begin(wait_op& op, time_point taken_up, maybe_tick& refiled) noexcept
{
  const wait_outcome outcome = decide(apply_deferred_cancels(), op, taken_up, refiled);
  // A deadline calls no handler.
  if (outcome != wait_outcome::none && !op.shared_) ++begun_;
  return outcome;
}

wait_outcome shard::decide(cancels_applied, wait_op& op, time_point taken_up,
                           maybe_tick& refiled) noexcept
{
  auto outcome = wait_outcome::expired;
  if (op.state_ == wait_state::rejected) {
    outcome = wait_outcome::rejected;
  } else if (op.state_ == wait_state::cancelled) {
    outcome = wait_outcome::cancelled;
  } else if (is_all_cancelled(op)) {
    // Not after its deadline is asked: the object that knows it may be gone.
    outcome = wait_outcome::cancelled;
    --left_of_cancelled_;
    ASIO_WHEEL_PROBE(cancel, &op, op.ask_, 0);
  } else if (op.lazy_) {
    auto& lazy = static_cast<lazy_wait_op&>(op);
    const time_point now = clock_.now();
    switch (refile_later(lazy, now, refiled)) {
      case refiling::done: return wait_outcome::none;
      case refiling::closed: outcome = wait_outcome::cancelled; break;
      case refiling::out_of_memory: outcome = lazy.deadline_->expire_early(); break;
      case refiling::not_needed: outcome = lazy.deadline_->expire(now);
    }
    if (rests(op)) stop_resting(lazy);
  }
  if (outcome != wait_outcome::cancelled && outcome != wait_outcome::rejected) {
    ++expired_;
    // A requeued wait has lost its tick.
    if (taken_up != time_point{}) {
      const duration late = taken_up - clock_.time_of(op.due());
      lateness_.add(late);
      ASIO_WHEEL_PROBE(expire, &op, op.ask_, late.count());
      if (has_probes && taken_up > clock_.time_of(op.due() + 1))
        ASIO_WHEEL_PROBE(late, &op, op.ask_, late.count());
    }
  }
  unlink_all(op);
  set_state(op, wait_state::none);
  return outcome;
}

// wake up

maybe_tick shard::next_tick() noexcept
{
  const maybe_tick next = next_.load(std::memory_order_seq_cst);
  if (next != unknown && !has_unneeded()) return next;
  const locked lock(*this);
  drop_unneeded();
  set_next(next_ != unknown ? next_.load() : wheel_.next_tick());
  return next_;
}

/// The wait behind next_ is gone, if its tick is unneeded.
void shard::drop_unneeded() noexcept
{
  const maybe_tick next = next_.load(std::memory_order_relaxed);
  if (next == unknown || next < unneeded_.load(std::memory_order_relaxed)) return;
  // Before the driver is told: a thread that sets the timer meanwhile must not set it for the old
  // tick.
  const bool is_known = later_ != next;
  next_.store(is_known ? later_ : maybe_tick(unknown), std::memory_order_seq_cst);
  if (!is_known) later_ = {};
}

maybe_tick shard::take_unneeded() noexcept
{
  const maybe_tick unneeded = unneeded_.load(std::memory_order_relaxed);
  if (!unneeded) return {};
  drop_unneeded();
  unneeded_.store({}, std::memory_order_relaxed);
  return is_idle() || !wheel_.has_undue() ? maybe_tick(tick{}) : unneeded;
}

time_point shard::expiry_of(const wait_op& op) const noexcept
{
  const tick due = op.due() == overdue ? wheel_.now() : op.due();
  const time_point filed = clock_.time_of(due);
  if (!op.lazy_) return filed;
  return std::max(filed, static_cast<const lazy_wait_op&>(op).deadline_->deadline());
}

void shard::add_to(wheel_stats& stats) const noexcept
{
  stats.pending += pending();
  stats.started += started_;
  stats.expired += expired_;
  stats.cancelled += cancelled_;
  stats.met += deadlines_met_;
  stats.rejected += rejected_;
  stats.cascaded += wheel_.cascaded();
  stats.lateness += lateness_;
}

}  // namespace asio_wheel::detail
