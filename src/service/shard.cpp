// L2 service: filing and cancelling waits under a shard's lock.
#include <asio_wheel/service/shard.hpp>

#include <asio_wheel/ground/prefetch.hpp>
#include <asio_wheel/service/lazy_waits.hpp>
#include <asio_wheel/service/shard_set.hpp>
#include <asio_wheel/service/waits_of_timer.hpp>

#include <boost/asio/bind_allocator.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace asio_wheel {

void shard::file(wait_op& op, tick when)
{
  wheel_.insert(op, when);
  ++started_;

  // A Lamport clock: later than this shard's previous start and than this thread's. So the waits
  // that a thread starts carry growing stamps, whichever shards they go to.
  std::uint64_t& thread_stamp = this_thread_stamp();
  stamp_ = thread_stamp = std::max(stamp_, thread_stamp) + 1;
  op.set_stamp(stamp_);

  // The driver wakes up in time for this one, and has its reason again.
  const tick unneeded = unneeded_.load(std::memory_order_relaxed);
  if (unneeded != no_tick && wheel_.wake_of(op) <= unneeded)
    unneeded_.store(no_tick, std::memory_order_relaxed);

  if (cancel_link* const link = link_of(op)) {
    link->op_ = &op;
    link->shard_.store(this, std::memory_order_release);
  }
}

wait_op* shard::pop_expired(time_point now, tick& renewed) noexcept
{
  auto& op = static_cast<wait_op&>(*wheel_.pop_due());
  note_progress();
  const tick filed = op.due();
  if (op.lazy_ && renew(op, now, renewed)) return nullptr;
  if (op.outcome() == wait_outcome::cancelled) {
    ++cancelled_;
  } else {
    ++expired_;
    lateness_.add(now - set_.clock().time_of(filed));
  }
  return &op;
}

bool shard::renew(wait_op& op, time_point now, tick& renewed) noexcept
{
  if (op.outcome() == wait_outcome::cancelled) return false;
  if (op.stamp_ <= last_unrenewed_) {
    op.outcome_ = static_cast<std::uint8_t>(wait_outcome::cancelled);
    return false;
  }
  lazy_waits& owner = lazy_waits::owner_of(static_cast<timer_wait_op&>(op));
  const time_point deadline = owner.deadline();
  if (deadline <= now) {
    op.outcome_ = static_cast<std::uint8_t>(owner.expire(now));
    return false;
  }
  const tick when = set_.clock().tick_ceil(deadline);
  wheel_.insert(op, when);  // what was just popped left room for it
  renewed = std::min(renewed, when);
  return true;
}

void shard::hasten(wait_op& op, tick when) noexcept
{
  if (wheel_.is_due(op) || op.due() <= when) return;
  wheel_.erase(op);
  wheel_.insert(op, when);  // what was just erased left room for it
}

/// An outcome that was decided before, of a lazy wait, stands; otherwise it is success.
void shard::expire(wait_op& op) noexcept
{
  detach(op, true);
}

void shard::prefetch_ties(const wait_op& op) noexcept
{
  if (op.of_timer_) waits_of_timer::prefetch_owner(static_cast<const timer_wait_op&>(op));
}

void shard::cancel(wait_op& op) noexcept
{
  settle();
  detach(op, false);
  ++cancelled_;
  take_out(op);
}

void shard::cancel_later(timer_wait_op& op) noexcept
{
  if (is_time_to_settle()) settle();
  put_off_[put_off_count_++] = &op;
  ++cancelled_;
}

bool shard::is_time_to_settle() const noexcept
{
  constexpr std::size_t enough = 16;
  if (put_off_count_ < enough) return false;
  return put_off_count_ == put_off_.size() || &set_.local() == this;
}

void shard::settle() noexcept
{
  constexpr std::size_t ahead = 4;
  for (std::size_t i = 0; i < put_off_count_; ++i) {
    if (i + ahead < put_off_count_) prefetch(put_off_[i + ahead]);
    drop_link(*put_off_[i]);
    waits_of_timer::cut(*put_off_[i]);
    take_out(*put_off_[i]);
  }
  put_off_count_ = 0;
}

void shard::take_out(wait_op& op) noexcept
{
  erase(op);
  make_ready(op, wait_outcome::cancelled);
}

/// Lets a lazy wait that is due end with operation_aborted when it is popped.
void shard::condemn(wait_op& op) noexcept
{
  detach(op, false);
  op.outcome_ = static_cast<std::uint8_t>(wait_outcome::cancelled);
}

bool shard::withdraw(wait_op& op) noexcept
{
  ++cancelled_;
  return erase(op);
}

/// Takes a wait out of the wheel. Whether that leaves the driver something to be told.
bool shard::erase(wait_op& op) noexcept
{
  const tick unneeded = wheel_.erase(op);
  if (unneeded == no_tick) return false;
  unneeded_.store(std::min(unneeded_.load(std::memory_order_relaxed), unneeded),
                  std::memory_order_relaxed);
  return true;
}

void shard::tell_driver() noexcept
{
  if (unneeded_.load(std::memory_order_relaxed) == no_tick) return;
  lock();
  const tick unneeded = take_unneeded();
  unlock();
  if (unneeded != no_tick) set_.forget_wakeup(unneeded);
}

void shard::make_ready(wait_op& op, wait_outcome outcome) noexcept
{
  op.outcome_ = static_cast<std::uint8_t>(outcome);
  ready_.push_back(op);
}

cancel_link* shard::link_of(const wait_op& op) noexcept
{
  if (!op.linked_) return nullptr;
  return op.of_timer_ ? static_cast<const linked<timer_wait_op>&>(op).link_
                      : static_cast<const linked<wait_op>&>(op).link_;
}

void shard::drop_link(wait_op& op) noexcept
{
  if (cancel_link* const link = link_of(op)) {
    op.linked_ = false;
    link->op_ = nullptr;
    link->shard_.store(nullptr, std::memory_order_release);
  }
}

void shard::detach(wait_op& op, bool expired) noexcept
{
  drop_link(op);
  if (op.of_timer_) waits_of_timer::forget(static_cast<timer_wait_op&>(op), expired && !op.lazy_);
}

void shard::close(wait_queue& all) noexcept
{
  settle();
  closed_ = true;
  destroyed_ += pending();
  const auto take = [&](wait_op& op) {
    detach(op, true);
    all.push_back(op);
  };
  while (wheel_.has_due()) {
    if (wheel_entry* e = wheel_.pop_due()) take(static_cast<wait_op&>(*e));
  }
  while (wait_op* op = front()) {
    wheel_.erase(*op);
    take(*op);
  }
  while (wheel_entry* e = ready_.pop_front()) take(static_cast<wait_op&>(*e));
}

void shard::add_to(wheel_stats& stats) const noexcept
{
  stats.pending += pending();
  stats.started += started_;
  stats.expired += expired_;
  stats.cancelled += cancelled_;
  stats.rejected += rejected_;
  stats.cascaded += wheel_.cascaded();
  stats.lateness += lateness_;
}

void shard::post_ready() noexcept
{
  try {
    set_.native().post(
      asio::bind_allocator(task_allocator<std::byte>(ready_memory_), [this] { complete_ready(); }));
  } catch (...) {
    // Only an executor that makes its own memory for a function can fail here. The waits stay
    // ready, and go with the next one that is.
    const std::lock_guard lock(*this);
    ready_posted_ = false;
  }
}

void shard::complete_ready()
{
  batch waits;
  bool more = false;
  tick unneeded;
  {
    const std::lock_guard lock(*this);
    settle();
    while (!waits.full() && !ready_.empty()) waits.push(static_cast<wait_op&>(*ready_.pop_front()));
    ready_posted_ = more = !ready_.empty();
    unneeded = take_unneeded();
  }
  if (unneeded != no_tick) set_.forget_wakeup(unneeded);
  // Ahead of the handlers, so that another thread can take its share.
  if (more) post_ready();

  waits.complete([this](wait_queue& rest) {
    {
      const std::lock_guard lock(*this);
      ready_.splice_front(rest);
      if (std::exchange(ready_posted_, true)) return;
    }
    post_ready();
  });
}

void shard_section::finish() noexcept
{
  const bool ready = shard_.put_off_count_ != 0 || !shard_.ready_.empty();
  const bool post = ready && !std::exchange(shard_.ready_posted_, true);
  const tick unneeded = shard_.take_unneeded();
  shard_set& set = shard_.set_;
  shard_.unlock();

  if (destroyed_) destroyed_->complete(wait_outcome::destroyed);
  if (post) shard_.post_ready();
  if (cancelled_ != 0) set.count_ended(cancelled_);
  if (unneeded != no_tick) set.forget_wakeup(unneeded);
}

void shard_section::cancel(wait_op& op) noexcept
{
  if (shard_.wheel_.is_due(op)) return shard_.condemn(op);
  unfinished_ = true;
  ++cancelled_;
  shard_.cancel(op);
}

void shard_section::cancel_later(timer_wait_op& op) noexcept
{
  unfinished_ = true;
  ++cancelled_;
  shard_.cancel_later(op);
}

void shard_section::reject(wait_op& op) noexcept
{
  unfinished_ = true;
  shard::drop_link(op);
  ++shard_.rejected_;
  shard_.make_ready(op, wait_outcome::rejected);
}

void cancel_link::operator()(asio::cancellation_type_t type)
{
  using asio::cancellation_type;
  const auto any =
    cancellation_type::terminal | cancellation_type::partial | cancellation_type::total;
  shard* const s = shard_.load(std::memory_order_acquire);
  if (!s || (type & any) == cancellation_type::none) return;
  shard_section section(*s);
  s->settle();
  if (op_ && s->is_pending(*op_)) section.cancel(*op_);
}

cancel_link::~cancel_link()
{
  if (shard* const s = shard_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(*s);
    if (op_) op_->linked_ = false;
  }
}

}  // namespace asio_wheel
