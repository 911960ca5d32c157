// L2 service: the transitions of a wait's life, under its shard's lock.
#include "shard.hpp"

#include <asio_wheel/detail/service/op_memory.hpp>

#include "../ground/memory.hpp"
#include "probe.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

namespace asio_wheel::detail {
namespace {

/// The stamp of the latest wait that this thread started, in whichever wheel.
constinit thread_local std::uint64_t this_thread_stamp = 0;

}  // namespace

bool put_off_cancels::empty() const noexcept
{
  return size_ == 0;
}

bool put_off_cancels::is_time(bool at_home) const noexcept
{
  constexpr std::size_t enough = 16;
  return size_ >= enough && (at_home || size_ == most);
}

void put_off_cancels::add(timer_wait_op& op) noexcept
{
  ops_[size_++] = &op;
}

std::span<timer_wait_op*> put_off_cancels::take() noexcept
{
  return {ops_.data(), std::exchange(size_, std::uint8_t{0})};
}

shard::shard(wheel_geometry geometry, const wheel_clock& clock) : wheel_(geometry), clock_(clock) {}

bool shard::is_closed() const noexcept
{
  return closed_;
}

void shard::settle() noexcept
{
  if (!put_off_.empty()) carry_out_cancels();
}

bool shard::is_all_cancelled(const wait_op& op) const noexcept
{
  return op.stamp_ <= all_cancelled_;
}

// file

tick shard::file(wait_op& op, tick when, home& h)
{
  const tick wake = insert(op, when);
  stamp(op);
  op.state_ = wait_state::filed;

  if (op.linked_) link_of(op).connect(h, op);
  ASIO_WHEEL_PROBE(start, &op, op.end_, when);
  return wake;
}

/// Counts a start, and says when it was.
void shard::stamp(wait_op& op) noexcept
{
  ++started_;
  // A Lamport clock: later than this shard's previous start and than this thread's. So the waits
  // that a thread starts carry growing stamps, whichever shards they go to.
  stamp_ = this_thread_stamp = std::max(stamp_, this_thread_stamp) + 1;
  op.stamp_ = stamp_ & wait_op::last_stamp;
}

void shard::file_due(wait_op& op) noexcept
{
  stamp(op);
  op.state_ = wait_state::handed_back;
  put_ended(op);
}

void shard::abort(wait_op& op) noexcept
{
  op.state_ = wait_state::cancelled;
  put_ended(op);
}

void shard::put_ended(wait_op& op) noexcept
{
  (op.shared_ ? deadlines_ : ended_).push_back(op);
}

/// Returns a tick to wake up at.
tick shard::insert(wait_op& op, tick when)
{
  const tick wake = wheel_.insert(op, when);
  // Before this thread looks for when the driver wakes up: if that does not see this one here, the
  // thread asks for a wake-up.
  if (wake < next_.load(std::memory_order_relaxed)) next_.store(wake, std::memory_order_seq_cst);
  // The driver wakes up in time for this one, and has its reason again.
  const tick unneeded = unneeded_.load(std::memory_order_relaxed);
  if (unneeded != no_tick && wheel_.wake_of(op) <= unneeded)
    unneeded_.store(no_tick, std::memory_order_relaxed);
  return wake;
}

void shard::reject(wait_op& op) noexcept
{
  ++rejected_;
  cut_ties(op);
  refuse(op);
}

void shard::refuse(wait_op& op) noexcept
{
  op.state_ = wait_state::rejected;
  put_ended(op);
}

tick shard::hasten(timer_wait_op& op, tick when) noexcept
{
  if (op.state_ != wait_state::filed || is_all_cancelled(op)) return no_tick;
  const tick due = when != at_once ? when : clock_.tick_floor(clock_.now());
  if (wheel_.is_due(op) || op.due() <= due) return no_tick;
  erase(op);
  const tick wake = insert(op, due);  // what was just erased left room for it
  return when != at_once ? wake : at_once;
}

// rest

void shard::start_resting(timer_wait_op& op) noexcept
{
  resting_.push_back(op);
  op.rests_ = true;
  ++number_resting_;
  ++met_;
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
  op.state_ = wait_state::none;
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

/// `never` is later than any tick that there may be to note.
void shard::note_if_idle() noexcept
{
  if (is_idle() && !has_unneeded()) unneeded_.store(never, std::memory_order_relaxed);
}

// cancel

std::size_t shard::cancel(wait_op& op) noexcept
{
  settle();
  if (is_all_cancelled(op)) {
    cut_ties(op);
    return 0;
  }
  ++cancelled_;
  end_as_cancelled(op);
  cut_ties(op);
  return 1;
}

std::size_t shard::cancel_one(timer_wait_list& waits) noexcept
{
  settle();
  for (int i = 0; i < step && !waits.empty(); ++i) {
    if (cancel(*waits.front()) != 0) return 1;
  }
  return 0;
}

std::size_t shard::cancel(timer_wait_list& waits, bool at_home) noexcept
{
  timer_wait_op* const only = waits.only();
  if (only && left_of_cancelled_ == 0) {
    if (put_off_.is_time(at_home)) carry_out_cancels();
    put_off_.add(*only);
    waits.clear();
    ++cancelled_;
    return 1;
  }
  return waits.empty() ? 0 : cancel_some(waits);
}

std::size_t shard::cancel_some(timer_wait_list& waits) noexcept
{
  std::size_t n = 0;
  for (int i = 0; i < step && !waits.empty(); ++i) n += cancel(*waits.front());
  return n;
}

void shard::carry_out_cancels() noexcept
{
  const std::span<timer_wait_op*> ops = put_off_.take();
  for (timer_wait_op*& op : ops) {
    prefetch((&op)[put_off_cancels::ahead]);
    if (op->large_) prefetch(reinterpret_cast<const std::byte*>(op) + op_line);
    op->next = nullptr;  // unlisted by its timer, which may be gone
    cut_link(*op);
    end_as_cancelled(*op);
  }
}

void shard::end_as_cancelled(wait_op& op) noexcept
{
  switch (op.state_) {
    case wait_state::filed:
      erase(op);
      ended_.push_back(op);
      break;
    default: break;  // on its way, where it will take note
  }
  op.state_ = wait_state::cancelled;
  ASIO_WHEEL_PROBE(cancel, &op, op.end_, 1);
}

std::size_t shard::cancel_all() noexcept
{
  settle();
  while (timer_wait_op* const op = resting_.front()) stop_resting(*op);
  all_cancelled_ = stamp_++;  // what is guarded from here on is later
  const std::uint64_t n = pending();
  if (n == 0) return 0;
  left_of_cancelled_ += n;
  cancelled_ += n;
  wheel_.drain();
  set_next(wheel_.next_tick());
  unneeded_.store(tick{}, std::memory_order_relaxed);
  return static_cast<std::size_t>(n);
}

/// Takes a filed wait out of the wheel. Whether it was pending.
bool shard::erase(wait_op& op) noexcept
{
  if (is_all_cancelled(op)) {
    wheel_.erase_drained(op);
    return false;
  }
  const tick unneeded = wheel_.erase(op);
  if (number_resting_ != 0) note_if_idle();
  if (unneeded == no_tick) return true;
  const tick next = next_.load(std::memory_order_relaxed);
  if (next != unknown && unneeded > next) return true;
  unneeded_.store(std::min(unneeded_.load(std::memory_order_relaxed), unneeded),
                  std::memory_order_relaxed);
  // Before the driver is told: a thread that sets its timer meanwhile finds that it does not know.
  if (next != unknown) next_.store(unknown, std::memory_order_seq_cst);
  return true;
}

// expire

bool shard::advance(tick now) noexcept
{
  settle();
  set_next(wheel_.advance(now));
  return wheel_.has_due();
}

/// Notes when the wheel has something to do next, for a driver that is about to ask for that.
void shard::set_next(tick next) noexcept
{
  unneeded_.store(no_tick, std::memory_order_relaxed);
  note_if_idle();
  next_.store(next, std::memory_order_seq_cst);
}

void shard::rewind(tick now) noexcept
{
  settle();
  if (now < wheel_.now()) wheel_.rewind(now);
  set_next(wheel_.next_tick());
}

bool shard::has_due() const noexcept
{
  return wheel_.has_due();
}

due_key shard::first_due() const noexcept
{
  const auto& op = static_cast<const wait_op&>(*wheel_.front_due());
  return {op.due(), op.stamp_};
}

bool shard::is_deadline_due() const noexcept
{
  return static_cast<const wait_op&>(*wheel_.front_due()).shared_;
}

/// Files a lazy wait again whose deadline is no longer over.
bool shard::renew(lazy_wait_op& op, time_point now, tick& renewed) noexcept
{
  const time_point deadline = op.deadline_->deadline();
  if (deadline <= now) return false;
  const tick when = clock_.tick_ceil(deadline);
  try {
    renewed = std::min(renewed, insert(op, when));
  } catch (...) {
    return false;  // the room it had in the wheel is taken: then it expires after all
  }
  op.state_ = wait_state::filed;
  op.deadline_->set_filed_for(deadline);
  return true;
}

// begin

wait_op* shard::pop_due(time_point now, wait_outcome& outcome, tick& renewed) noexcept
{
  for (const wheel_entry* e : wheel_.fresh_due()) {
    if (!e) continue;
    const auto& op = static_cast<const wait_op&>(*e);
    // The memory that the call and begin() need, next to the line of the wait that is at hand.
    if (op.large_) prefetch(reinterpret_cast<const std::byte*>(&op) + op_line);
    if (!op.of_timer_) continue;
    const auto& of_timer = static_cast<const timer_wait_op&>(op);
    prefetch(of_timer.next);
    prefetch(of_timer.prev);
  }
  auto* const op = static_cast<wait_op*>(wheel_.pop_due());
  if (!op) return nullptr;
  if (op->lazy_) {
    // Another thread's pass may have been made after `now`.
    const time_point present = std::max(now, clock_.time_of(wheel_.now()));
    if (renew(static_cast<lazy_wait_op&>(*op), present, renewed)) return nullptr;
    if (rests(*op)) stop_resting(static_cast<timer_wait_op&>(*op));
  }
  if (op->foreign_ || op->shared_) {
    outcome = send(*op);
    return op;
  }
  outcome = decide(*op, now, renewed);
  return outcome != wait_outcome::undecided ? op : nullptr;
}

/// Lets a wait go to where it is decided how it ends: to its handler's executor, most often.
wait_outcome shard::send(wait_op& op) noexcept
{
  if (op.state_ == wait_state::filed || op.state_ == wait_state::handed_back)
    op.state_ = wait_state::sent;
  if (op.shared_) ++static_cast<guarded_wait&>(op).holders_;
  return wait_outcome::undecided;
}

wait_outcome shard::begin(wait_op& op, time_point taken_up, tick& renewed) noexcept
{
  settle();
  return decide(op, taken_up, renewed);
}

wait_outcome shard::decide(wait_op& op, time_point taken_up, tick& renewed) noexcept
{
  auto outcome = wait_outcome::expired;
  if (op.state_ == wait_state::rejected) {
    outcome = wait_outcome::rejected;
  } else if (op.state_ == wait_state::cancelled) {
    outcome = wait_outcome::cancelled;
  } else if (is_all_cancelled(op)) {
    outcome = wait_outcome::cancelled;
    --left_of_cancelled_;
    ASIO_WHEEL_PROBE(cancel, &op, op.end_, 0);
  } else {
    if (op.lazy_) {
      auto& lazy = static_cast<lazy_wait_op&>(op);
      const time_point now = clock_.now();
      if (renew(lazy, now, renewed)) return wait_outcome::undecided;
      outcome = lazy.deadline_->expire(now);
    }
    ++expired_;
    // One that was handed back has lost its tick.
    if (taken_up != time_point{}) {
      const duration late = taken_up - clock_.time_of(op.due());
      lateness_.add(late);
      ASIO_WHEEL_PROBE(expire, &op, op.end_, late.count());
      if (has_probes && taken_up > clock_.time_of(op.due() + 1))
        ASIO_WHEEL_PROBE(late, &op, op.end_, late.count());
    }
  }
  cut_ties(op);
  op.state_ = wait_state::none;
  ++begun_;
  return outcome;
}

bool shard::has_ended() const noexcept
{
  return !put_off_.empty() || !ended_.empty() || wheel_.has_drained();
}

wait_op* shard::pop_ended(wait_outcome& outcome) noexcept
{
  settle();
  wait_op* op = ended_.pop_front();
  if (op) {
    wait_op::link_of(*op).next = nullptr;  // says that it is in no list
  } else {
    op = static_cast<wait_op*>(wheel_.pop_drained());
    if (!op) return nullptr;
    note_if_idle();
    if (op->shared_) {
      op->state_ = wait_state::cancelled;
      --left_of_cancelled_;
      deadlines_.push_back(*op);
      return nullptr;
    }
  }
  if (op->foreign_) {
    outcome = send(*op);
  } else if (op->state_ == wait_state::cancelled) {
    ++begun_;
    outcome = wait_outcome::cancelled;  // which leaves nothing to be done
  } else {
    tick none = no_tick;
    outcome = decide(*op, {}, none);
  }
  return op;
}

wait_op* shard::pop_deadline() noexcept
{
  wait_op* const op = firing_.pop_front();
  if (!op) return nullptr;
  wait_op::link_of(*op).next = nullptr;
  static_cast<void>(send(*op));
  return op;
}

void shard::requeue_deadline(wait_op& op) noexcept
{
  if (op.state_ == wait_state::sent) op.state_ = wait_state::handed_back;
  deadlines_.push_back(op);
}

void shard::keep_refused(wait_op& op) noexcept
{
  // One that was cancelled or refused on its way stays that.
  if (op.state_ == wait_state::sent) op.state_ = wait_state::handed_back;
  (op.shared_ ? refused_deadlines_ : refused_).push_back(op);
}

void shard::keep_finished(wait_op& op) noexcept
{
  op.state_ = wait_state::finished;
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
  settle();
  while (timer_wait_op* const op = resting_.front()) stop_resting(*op);
  closed_ = true;
  wheel_.drain();
}

wait_op* shard::pop_remaining() noexcept
{
  wait_op* op = static_cast<wait_op*>(wheel_.pop_drained());
  for (wait_list* all : {&ended_, &deadlines_, &firing_, &refused_, &refused_deadlines_})
    if (!op) op = all->pop_front();
  if (op && !is_finished(*op)) drop(*op);
  return op;
}

bool shard::drop(wait_op& op) noexcept
{
  settle();
  const bool was_pending = end_uncalled(op, destroyed_);
  cut_ties(op);
  return was_pending;
}

bool shard::drop_filed(wait_op& op) noexcept
{
  if (!erase(op)) return end_uncalled(op, met_);
  op.state_ = wait_state::none;
  ++met_;
  return true;
}

bool shard::drop_deadline(wait_op& op) noexcept
{
  switch (op.state_) {
    case wait_state::filed: return drop_filed(op);
    case wait_state::guarded:  // which nobody has counted
      wait_list::erase(op);
      op.state_ = wait_state::none;
      return false;
    case wait_state::handed_back:
    case wait_state::cancelled:
    case wait_state::rejected:
      if (wait_op::link_of(op).next) wait_list::erase(op);
      break;
    case wait_state::none:
    case wait_state::sent:
    case wait_state::finished: break;
  }
  return end_uncalled(op, met_);
}

/// Counts the end of a wait whose handler will not be called, as one of `ended` if it was pending
/// until now. Whether it was.
bool shard::end_uncalled(wait_op& op, std::uint64_t& ended) noexcept
{
  const wait_state s = op.state_;
  op.state_ = wait_state::none;
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

void shard::cut_link(wait_op& op) noexcept
{
  if (!op.linked_) return;
  link_of(op).disconnect();
  op.linked_ = false;
}

void shard::cut_ties(wait_op& op) noexcept
{
  if (op.shared_) return;  // its operation goes on
  cut_link(op);
  if (!op.of_timer_) return;
  auto& of_timer = static_cast<timer_wait_op&>(op);
  if (!of_timer.is_listed()) return;
  timer_wait_list::erase(of_timer);
  of_timer.next = nullptr;
}

tick shard::next_tick() noexcept
{
  const tick next = next_.load(std::memory_order_seq_cst);
  if (next != unknown) return next;
  const std::lock_guard lock(*this);
  set_next(wheel_.next_tick());
  return next_;
}

tick shard::take_unneeded() noexcept
{
  const tick unneeded = unneeded_.load(std::memory_order_relaxed);
  if (unneeded == no_tick) return no_tick;
  unneeded_.store(no_tick, std::memory_order_relaxed);
  return is_idle() || wheel_.next_tick() == no_tick ? tick{} : unneeded;
}

bool shard::has_unneeded() const noexcept
{
  return unneeded_.load(std::memory_order_relaxed) != no_tick;
}

time_point shard::expiry_of(const wait_op& op) const noexcept
{
  const tick due = op.due() == no_tick ? wheel_.now() : op.due();  // no_tick: overdue
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
  stats.met += met_;
  stats.rejected += rejected_;
  stats.cascaded += wheel_.cascaded();
  stats.lateness += lateness_;
}

}  // namespace asio_wheel::detail
