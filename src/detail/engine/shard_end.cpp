// L2 engine: waits that have ended, and waits that end uncalled.
#include "shard.hpp"

namespace asio_wheel::detail {

bool shard::has_ended() const noexcept
{
  return !deferred_.empty() || !ended_.empty() || wheel_.has_drained();
}

wait_op* shard::pop_ended(wait_request& request) noexcept
{
  apply_deferred_cancels();
  wait_op* op = ended_.pop_front();
  if (op) {
    wait_op::link_of(*op).next = nullptr;  // it is in no list
  } else {
    op = static_cast<wait_op*>(wheel_.pop_drained());
    if (!op) return nullptr;
    note_if_idle();
    if (op->shared_) {
      set_state(*op, wait_state::cancelled);
      --left_of_cancelled_;
      deadlines_.push_back(*op);
      return nullptr;
    }
  }
  if (op->foreign_) {
    request = send(*op);
  } else if (op->state_ == wait_state::cancelled) {
    ++begun_;
    request = wait_outcome::cancelled;  // nothing else is left to do
  } else {
    request = begin_requeued(*op);
  }
  return op;
}

/// Begins a wait that was rejected or requeued. Out of the way of the many that were cancelled.
wait_request shard::begin_requeued(wait_op& op) noexcept
{
  maybe_tick none;
  return begin(op, {}, none);
}

wait_op* shard::pop_deadline() noexcept
{
  wait_op* const op = gathered_.pop_front();
  if (!op) return nullptr;
  wait_op::link_of(*op).next = nullptr;
  static_cast<void>(send(*op));
  return op;
}

void shard::requeue_deadline(wait_op& op) noexcept
{
  if (op.state_ == wait_state::sent) set_state(op, wait_state::requeued);
  deadlines_.push_back(op);
}

void shard::keep_refused(wait_op& op) noexcept
{
  // A wait that was cancelled or refused on its way stays so.
  if (op.state_ == wait_state::sent) set_state(op, wait_state::requeued);
  if (op.state_ == wait_state::none) set_state(op, wait_state::cancelled);  // it has begun
  (op.shared_ ? refused_deadlines_ : refused_).push_back(op);
}

void shard::keep_finished(wait_op& op) noexcept
{
  set_state(op, wait_state::finished);
  refused_deadlines_.push_back(op);
}

void shard::retry_refused() noexcept
{
  ended_.splice_back(refused_);
  deadlines_.splice_back(refused_deadlines_);
}

// destroy

void shard::close() noexcept
{
  apply_deferred_cancels();
  while (timer_wait_op* const op = resting_.front()) stop_resting(*op);
  closed_ = true;
  wheel_.drain();
}

wait_op* shard::pop_remaining() noexcept
{
  wait_op* op = static_cast<wait_op*>(wheel_.pop_drained());
  for (wait_list* all : {&ended_, &deadlines_, &gathered_, &refused_, &refused_deadlines_})
    if (!op) op = all->pop_front();
  if (op && !is_finished(*op)) drop(*op);
  return op;
}

bool shard::drop(wait_op& op) noexcept
{
  apply_deferred_cancels();
  const bool was_pending = end_uncalled(op, destroyed_);
  unlink_all(op);
  return was_pending;
}

bool shard::drop_filed(wait_op& op) noexcept
{
  if (!erase(op)) return end_uncalled(op, deadlines_met_);
  set_state(op, wait_state::none);
  ++deadlines_met_;
  return true;
}

bool shard::drop_deadline(wait_op& op) noexcept
{
  switch (op.state_) {
    case wait_state::filed: return drop_filed(op);
    case wait_state::guarded:  // nobody has counted it
      wait_list::erase(op);
      set_state(op, wait_state::none);
      return false;
    case wait_state::requeued:
    case wait_state::cancelled:
    case wait_state::rejected:
      if (wait_op::link_of(op).next) wait_list::erase(op);
      break;
    case wait_state::none:
    case wait_state::sent:
    case wait_state::finished: break;
  }
  return end_uncalled(op, deadlines_met_);
}

/// Counts the end of a wait whose handler will not be called, in `ended` if it was pending until
/// now. Returns true if it was.
bool shard::end_uncalled(wait_op& op, std::uint64_t& ended) noexcept
{
  const wait_state s = op.state_;
  set_state(op, wait_state::none);
  if (s == wait_state::none || s == wait_state::cancelled || s == wait_state::rejected)
    return false;
  if (is_all_cancelled(op)) {
    --left_of_cancelled_;
    return false;
  }
  ++ended;
  return true;
}

wait_link& shard::link_of(const wait_op& op) noexcept
{
  if (op.lazy_) return *static_cast<const linked<lazy_wait_op>&>(op).link_;
  if (op.of_timer_) return *static_cast<const linked<timer_wait_op>&>(op).link_;
  return *static_cast<const linked<wait_op>&>(op).link_;
}

void shard::unlink(wait_op& op) noexcept
{
  if (!op.linked_) return;
  link_of(op).unlink();
  op.linked_ = false;
}

void shard::unlink_all(wait_op& op) noexcept
{
  if (op.shared_) return;  // its operation goes on
  unlink(op);
  if (!op.of_timer_) return;
  auto& of_timer = static_cast<timer_wait_op&>(op);
  if (!of_timer.is_listed()) return;
  timer_wait_list::erase(of_timer);
  of_timer.next = nullptr;
}

}  // namespace asio_wheel::detail
