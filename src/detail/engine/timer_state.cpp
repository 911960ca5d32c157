// L2 engine: cancels and moves the waits of one object, and sets a timer.
#include <asio_wheel/detail/engine/timer_state.hpp>

#include "../base/memory.hpp"
#include "timer_state.hpp"

#include <utility>

namespace asio_wheel::detail {

timer_waits::timer_waits(wheel_core& c) noexcept : shard_(&c.shards.local())
{
  intrusive_ptr_add_ref(&c);
}

timer_waits::~timer_waits()
{
  cancel();
  intrusive_ptr_release(&core());
}

wheel_core& timer_waits::core() const noexcept
{
  return shard_.load(std::memory_order_acquire)->core;
}

const asio::any_io_executor& timer_waits::context_executor() const noexcept
{
  return core().executor;
}

std::size_t timer_waits::cancel() noexcept
{
  return cancel(here(), [](shard_lock&) {});
}

std::size_t timer_waits::cancel_one() noexcept
{
  for (;;) {
    shard_lock lock = enter();
    const std::size_t n = lock.cancel_one(waits_);
    if (n != 0 || waits_.empty()) return n;
  }
}

shard& timer_waits::here() const noexcept
{
  return core().shards.local();
}

shard_lock timer_waits::enter() const noexcept
{
  for (;;) {
    shard* const sh = shard_.load(std::memory_order_acquire);
    sh->lock();
    // Acquires again: the object may have gone to another shard and back, with other waits.
    if (sh == shard_.load(std::memory_order_acquire)) return {*sh, std::adopt_lock};
    sh->unlock();
  }
}

std::uint64_t timer_waits::announce() noexcept
{
  shard& sh = *shard_.load(std::memory_order_relaxed);
  sh.assert_held();  // a task expires under the lock
  return sh.announce();
}

bool timer_waits::file(shard_lock& lock, timer_wait_op& op, tick& when, bool announced)
{
  wheel_core& c = lock.at().core;
  c.shards.note_start(lock.at());
  if (!c.file(lock, op, when, announced)) return false;
  waits_.push_back(op);
  return true;
}

bool timer_waits::is_at(const shard& sh) const noexcept
{
  return shard_.load(std::memory_order_relaxed) == &sh;
}

void timer_waits::go_to(shard& sh) noexcept
{
  if (!is_at(sh)) shard_.store(&sh, std::memory_order_release);
}

void timer_waits::take_over(timer_waits& other, const shard_lock& lock) noexcept
{
  shard_ = &lock.at();
  waits_.splice_back(other.waits_);
}

void timer_waits::go_here() noexcept
{
  shard& local = here();
  if (is_at(local)) return;
  const shard_lock lock = enter();
  if (waits_.empty()) go_to(local);
}

timer_state::timer_state(timer_state&& other) noexcept : timer_state(other.core())
{
  *this = std::move(other);
}

timer_state& timer_state::operator=(timer_state&& other) noexcept
{
  assign(other, [&] {
    latest_ = other.latest_.load(std::memory_order_relaxed);
    cell_ = other.cell_.load(std::memory_order_relaxed);
    expiry_ = std::exchange(other.expiry_, {});
    when_ = other.when_.exchange({});
  });
  return *this;
}

time_point timer_state::expiry() const noexcept
{
  const shard_lock lock = enter();
  return expiry_;
}

std::size_t timer_state::expires_at(time_point deadline) noexcept
{
  shard& local = here();
  prefetch_latest(local);
  const wheel_clock& clock = core().clock;
  return set_expiry(
    deadline, clock.has_surely_passed(deadline) ? maybe_tick() : clock.tick_ceil(deadline), local);
}

std::size_t timer_state::expires_after(duration delay) noexcept
{
  prefetch_self();
  const auto early = wheel_clock::early_start_of_delay();
  wheel_core& c = core();
  shard& local = c.shards.local();
  prefetch_latest(local);
  const wheel_clock& clock = c.clock;
  const time_point deadline = clock.deadline_after(delay, early);
  return set_expiry(deadline, delay > duration::zero() ? clock.tick_ceil(deadline) : maybe_tick(),
                    local);
}

std::size_t timer_state::set_expiry(time_point deadline, maybe_tick when, shard& local) noexcept
{
  return timer_waits::cancel(local, [&](shard_lock&) {
    expiry_ = deadline;
    when_.store(when, std::memory_order_relaxed);
    // A start will follow, no doubt. Without waits, the object can move to this thread's shard.
    go_to(local);
  });
}

std::size_t timer_state::cancel() noexcept
{
  const shard& local = here();
  prefetch_latest(local);
  return timer_waits::cancel(local, [](shard_lock&) {});
}

void timer_state::start(timer_wait_op& op)
{
  tick when;
  wheel_core* c = nullptr;
  {
    shard_lock lock = enter();
    when = tick_of_expiry();
    if (!file(lock, op, when)) return;
    latest_.store(&op, std::memory_order_relaxed);
    cell_.store(op.cell(), std::memory_order_relaxed);
    c = &lock.at().core;
  }
  c->wake_at(when);
}

void timer_state::block() const
{
  const wheel_clock& clock = core().clock;
  time_point until = expiry();
  for (; clock.now() < until; until = expiry()) clock.sleep_towards(until);
}

/// The tick to file a wait under now.
tick timer_state::tick_of_expiry() const noexcept
{
  const maybe_tick when = when_.load(std::memory_order_relaxed);
  // Computes a past expiry's tick anew: virtual_time may have set the clock back.
  return when ? *when : core().clock.tick_for(expiry_);
}

void timer_state::prefetch_self() const noexcept
{
  prefetch(this);
  prefetch(&expiry_);
}

/// Prefetches what a deferred cancel will need, if this thread is likely to apply it (shard.hpp).
/// The addresses may be those of a wait that is gone: a prefetch does not mind.
void timer_state::prefetch_latest(const shard& local) const noexcept
{
  if (!is_at(local)) return;
  prefetch(latest_.load(std::memory_order_relaxed));
  const void* const cell = cell_.load(std::memory_order_relaxed);
  prefetch(cell);
  prefetch(chunk::of(cell));
}

}  // namespace asio_wheel::detail
