// L2 service: the list of waits of one timer.
#include <asio_wheel/service/waits_of_timer.hpp>

#include <asio_wheel/ground/prefetch.hpp>

#include <cassert>
#include <utility>

namespace asio_wheel {

waits_of_timer::waits_of_timer(shard_set& shards) noexcept : shard_(&shards.local())
{
  intrusive_ptr_add_ref(&shards);
}

waits_of_timer::waits_of_timer(waits_of_timer&& other) noexcept : waits_of_timer(other.shards())
{
  take_over(other, section(other));
}

waits_of_timer& waits_of_timer::operator=(waits_of_timer&& other) noexcept
{
  if (this != &other) {
    const auto left = leave_for(other);
    take_over(other, section(other));
  }
  return *this;
}

boost::intrusive_ptr<shard_set> waits_of_timer::leave_for(const waits_of_timer& other) noexcept
{
  cancel();
  intrusive_ptr_add_ref(&other.shards());
  return boost::intrusive_ptr<shard_set>(&shards(), false);
}

waits_of_timer::~waits_of_timer()
{
  cancel();
  intrusive_ptr_release(&shards());
}

void waits_of_timer::take_over(waits_of_timer& other, const section& s) noexcept
{
  shard_ = &s.home();
  head_ = other.head_.exchange(nullptr, std::memory_order_relaxed);
  cell_ = other.cell_.load(std::memory_order_relaxed);
  tail_ = std::exchange(other.tail_, nullptr);
  if (tail_) tail_->next_ = end_mark();
  expiry_ = std::exchange(other.expiry_, {});
  when_ = other.when_.exchange({});
}

time_point waits_of_timer::expiry() const noexcept
{
  const section s(*this);
  return expiry_;
}

std::size_t waits_of_timer::expires_at(time_point deadline) noexcept
{
  return set_expiry(deadline, shards().clock().tick_for(deadline));
}

std::size_t waits_of_timer::expires_after(duration delay) noexcept
{
  prefetch_self();
  const auto early = wheel_clock::early_start_of_delay();
  prefetch_waits();
  const wheel_clock& clock = shards().clock();
  const time_point deadline = clock.deadline_after(delay, early);
  return set_expiry(deadline, clock.tick_for(deadline, delay));
}

std::size_t waits_of_timer::set_expiry(time_point deadline, tick when) noexcept
{
  section s(*this);
  const std::size_t n = cancel_all(s);
  expiry_ = deadline;
  when_.store(when, std::memory_order_relaxed);
  // A wait is about to be started, no doubt; now that there is none, it can be here.
  shard* const local = &shards().local();
  if (&s.home() != local && !head_.load(std::memory_order_relaxed))
    shard_.store(local, std::memory_order_release);
  return n;
}

std::size_t waits_of_timer::cancel() noexcept
{
  prefetch_waits();
  section s(*this);
  return cancel_all(s);
}

std::size_t waits_of_timer::cancel_all(section& s) noexcept
{
  timer_wait_op* op = head_.load(std::memory_order_relaxed);
  if (!op) return 0;
  head_.store(nullptr, std::memory_order_relaxed);
  if (std::exchange(tail_, nullptr) == op &&
      s.home().is_surely_pending(when_.load(std::memory_order_relaxed))) {
    s.cancel_later(*op);
    return 1;
  }
  std::size_t n = 0;
  while (op) {
    timer_wait_op* const following = next(*op);
    op->next_ = 0;
    if (s.home().is_pending(*op)) {
      s.cancel(*op);
      ++n;
    }
    op = following;
  }
  return n;
}

std::size_t waits_of_timer::cancel_one() noexcept
{
  section s(*this);
  for (timer_wait_op* op = head_; op; op = next(*op)) {
    if (s.home().is_pending(*op)) {
      s.cancel(*op);
      return 1;
    }
  }
  return 0;
}

void waits_of_timer::start(timer_wait_op& op)
{
  start(op, when_.load(std::memory_order_relaxed), [this] { return tick_of_expiry(); });
}

/// What a wait is filed under now. Requires the lock.
tick waits_of_timer::tick_of_expiry() noexcept
{
  const wheel_clock& clock = shards().clock();
  tick when = when_.load(std::memory_order_relaxed);
  // Filed under the present tick because it had passed when it was set. But a clock that
  // virtual_time has set back may be before it again.
  if (clock.time_of(when) < expiry_ && clock.now() < expiry_) {
    when = clock.tick_ceil(expiry_);
    when_.store(when, std::memory_order_relaxed);
  }
  return when;
}

/// Takes a timer without waits to another shard.
void waits_of_timer::move_to(shard& local) noexcept
{
  const section s(*this);
  if (!head_) shard_.store(&local, std::memory_order_release);
}

void waits_of_timer::forget(timer_wait_op& op, bool expired) noexcept
{
  if (op.next_ == 0) return;
  waits_of_timer& owner = owner_of(op);
  if (!expired) return owner.remove(op);
  // Those that were started after the expiry, behind the others, may still be pending.
  const shard& home = *owner.shard_.load(std::memory_order_relaxed);
  timer_wait_op* each = owner.head_.load(std::memory_order_relaxed);
  while (each && (home.is_closed() || !home.is_pending(*each))) {
    timer_wait_op* const following = next(*each);
    each->next_ = 0;
    each = following;
  }
  owner.head_.store(each, std::memory_order_relaxed);
  if (!each) owner.tail_ = nullptr;
  assert(op.next_ == 0);  // waits of one timer become due in the order of their start
}

void waits_of_timer::cut(timer_wait_op& op) noexcept
{
  op.next_ = 0;
}

void waits_of_timer::prefetch_owner(const timer_wait_op& op) noexcept
{
  prefetch(reinterpret_cast<const void*>(op.next_ & ~std::uintptr_t{1}));
}

timer_wait_op* waits_of_timer::next(const timer_wait_op& op) noexcept
{
  return op.next_ & 1 ? nullptr : reinterpret_cast<timer_wait_op*>(op.next_);
}

waits_of_timer& waits_of_timer::owner_of(const timer_wait_op& op) noexcept
{
  const timer_wait_op* last = &op;
  while (const timer_wait_op* following = next(*last)) last = following;
  return *reinterpret_cast<waits_of_timer*>(last->next_ & ~std::uintptr_t{1});
}

void waits_of_timer::prefetch_self() const noexcept
{
  prefetch(this);
  prefetch(&expiry_);
}

/// Asks for what a cancel that is put off will need, unless that is left to threads of another
/// shard (shard::put_off_). The addresses may be those of a wait that is gone, which a prefetch
/// does not mind.
void waits_of_timer::prefetch_waits() const noexcept
{
  if (shard_.load(std::memory_order_relaxed) != &shards().local()) return;
  prefetch(head_.load(std::memory_order_relaxed));
  timing_wheel::prefetch_cell(cell_.load(std::memory_order_relaxed));
}

void waits_of_timer::append(timer_wait_op& op) noexcept
{
  op.next_ = end_mark();
  if (tail_)
    tail_->next_ = reinterpret_cast<std::uintptr_t>(&op);
  else
    head_.store(&op, std::memory_order_relaxed);
  tail_ = &op;
  cell_.store(op.cell(), std::memory_order_relaxed);
}

void waits_of_timer::remove(timer_wait_op& op) noexcept
{
  timer_wait_op* before = nullptr;
  for (timer_wait_op* each = head_; each != &op; each = next(*each)) before = each;
  if (before)
    before->next_ = op.next_;
  else
    head_ = next(op);
  if (tail_ == &op) tail_ = before;
  op.next_ = 0;
}

}  // namespace asio_wheel
