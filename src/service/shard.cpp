// L2 service: filing and cancelling waits under a shard's lock.
#include <asio_wheel/service/shard.hpp>

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

  const tick unsettled = unsettled_.load(std::memory_order_relaxed);
  if (unsettled != never && wheel_.wake_of(op) <= unsettled)
    unsettled_.store(never, std::memory_order_relaxed);

  if (cancel_link* const link = link_of(op)) {
    link->op_ = &op;
    link->shard_.store(this, std::memory_order_release);
  }
}

wait_op& shard::pop_expired(std::chrono::nanoseconds late) noexcept
{
  ++expired_;
  lateness_.add(late);
  return static_cast<wait_op&>(*wheel_.pop_due());
}

void shard::expire(wait_op& op) noexcept
{
  detach(op, true);
  op.outcome_ = static_cast<std::uint8_t>(wait_outcome::expired);
}

void shard::prefetch_ties(const wait_op& op) noexcept
{
  if (op.of_timer_) waits_of_timer::prefetch_owner(static_cast<const timer_wait_op&>(op));
}

tick shard::cancel(wait_op& op) noexcept
{
  const tick unneeded = wheel_.erase(op);
  detach(op, false);
  ++cancelled_;
  make_ready(op, wait_outcome::cancelled);
  return unneeded;
}

tick shard::withdraw(wait_op& op) noexcept
{
  const tick unneeded = wheel_.erase(op);
  ++cancelled_;
  if (unneeded < unsettled_.load(std::memory_order_relaxed))
    unsettled_.store(unneeded, std::memory_order_relaxed);
  return unneeded;
}

void shard::settle() noexcept
{
  if (unsettled_.load(std::memory_order_relaxed) == never) return;
  tick unneeded;
  {
    const std::lock_guard lock(*this);
    unneeded = unsettled_.load(std::memory_order_relaxed);
    unsettled_.store(never, std::memory_order_relaxed);
    if (unneeded != never && wheel_.empty()) unneeded = tick{};
  }
  if (unneeded != never) set_.forget_wakeup(unneeded);
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
  if (op.of_timer_) waits_of_timer::forget(static_cast<timer_wait_op&>(op), expired);
}

void shard::close(wait_queue& all) noexcept
{
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
  {
    const std::lock_guard lock(*this);
    while (!waits.full() && !ready_.empty()) waits.push(static_cast<wait_op&>(*ready_.pop_front()));
    ready_posted_ = more = !ready_.empty();
  }
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

shard_section::~shard_section()
{
  const bool post = !shard_.ready_.empty() && !std::exchange(shard_.ready_posted_, true);
  const bool idle = cancelled_ != 0 && shard_.wheel_.empty();
  shard_set& set = shard_.set_;
  shard_.unlock();

  if (destroyed_) destroyed_->complete(wait_outcome::destroyed);
  if (post) shard_.post_ready();
  if (cancelled_ != 0) set.count_ended(cancelled_);
  if (idle || unneeded_ != never) set.forget_wakeup(idle ? tick{} : unneeded_);
}

void shard_section::cancel(wait_op& op) noexcept
{
  ++cancelled_;
  unneeded_ = std::min(unneeded_, shard_.cancel(op));
}

void shard_section::reject(wait_op& op) noexcept
{
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
