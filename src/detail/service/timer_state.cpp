// L2 service: cancelling the waits of one object, taking them elsewhere, and setting a timer.
#include <asio_wheel/detail/service/timer_state.hpp>

#include "../ground/memory.hpp"
#include "timer_state.hpp"

#include <utility>

namespace asio_wheel::detail {

timer_waits::timer_waits(wheel_core& c) noexcept : home_(&c.shards.local())
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
  return home_.load(std::memory_order_acquire)->core;
}

const asio::any_io_executor& timer_waits::native() const noexcept
{
  return home_.load(std::memory_order_acquire)->core.executor;
}

std::size_t timer_waits::cancel() noexcept
{
  return cancel(here(), [](section&) {});
}

home& timer_waits::here() const noexcept
{
  return home_.load(std::memory_order_acquire)->core.shards.local();
}

section timer_waits::enter() const noexcept
{
  for (;;) {
    home* const h = home_.load(std::memory_order_acquire);
    h->lock();
    // Acquires again: the object may have been away, and back, with its waits changed there.
    if (h == home_.load(std::memory_order_acquire)) return {*h, std::adopt_lock};
    h->unlock();
  }
}

std::uint64_t timer_waits::announce() noexcept
{
  home& h = *home_.load(std::memory_order_relaxed);
  h.core.count_started(1);
  return h.announce();
}

bool timer_waits::file(section& s, timer_wait_op& op, tick& when, bool announced)
{
  wheel_core& c = s.at.core;
  c.shards.note_start(s.at);
  if (!c.file(s, op, when, announced)) return false;
  waits_.push_back(op);
  return true;
}

bool timer_waits::is_at(const home& h) const noexcept
{
  return home_.load(std::memory_order_relaxed) == &h;
}

void timer_waits::go_to(home& h) noexcept
{
  if (!is_at(h)) home_.store(&h, std::memory_order_release);
}

void timer_waits::take_over(timer_waits& other, const section& s) noexcept
{
  home_ = &s.at;
  waits_.splice_back(other.waits_);
}

void timer_waits::go_here() noexcept
{
  home& local = here();
  if (is_at(local)) return;
  const section s = enter();
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
    when_ = other.when_.exchange(no_tick);
  });
  return *this;
}

time_point timer_state::expiry() const noexcept
{
  const section s = enter();
  return expiry_;
}

std::size_t timer_state::expires_at(time_point deadline) noexcept
{
  home& local = here();
  prefetch_latest(local);
  const wheel_clock& clock = core().clock;
  return set_expiry(deadline, clock.has_passed(deadline) ? no_tick : clock.tick_ceil(deadline),
                    local);
}

std::size_t timer_state::expires_after(duration delay) noexcept
{
  prefetch_self();
  const auto early = wheel_clock::early_start_of_delay();
  wheel_core& c = core();
  home& local = c.shards.local();
  prefetch_latest(local);
  const wheel_clock& clock = c.clock;
  const time_point deadline = clock.deadline_after(delay, early);
  return set_expiry(deadline, delay > duration::zero() ? clock.tick_ceil(deadline) : no_tick,
                    local);
}

std::size_t timer_state::set_expiry(time_point deadline, tick when, home& local) noexcept
{
  return timer_waits::cancel(local, [&](section&) {
    expiry_ = deadline;
    when_.store(when, std::memory_order_relaxed);
    // A wait is about to be started, no doubt; now that there is none, it can be at home here.
    go_to(local);
  });
}

std::size_t timer_state::cancel() noexcept
{
  const home& local = here();
  prefetch_latest(local);
  return timer_waits::cancel(local, [](section&) {});
}

std::size_t timer_state::cancel_one() noexcept
{
  for (;;) {
    section s = enter();
    const std::size_t n = s.cancel_one(waits_);
    if (n != 0 || waits_.empty()) return n;
  }
}

void timer_state::start(timer_wait_op& op)
{
  tick when;
  wheel_core* c = nullptr;
  {
    section s = enter();
    when = tick_of_expiry();
    if (!file(s, op, when)) return;
    latest_.store(&op, std::memory_order_relaxed);
    cell_.store(op.cell(), std::memory_order_relaxed);
    c = &s.at.core;
  }
  c->wake_at(when);
}

void timer_state::block() const
{
  const wheel_clock& clock = core().clock;
  time_point until = expiry();
  for (; clock.now() < until; until = expiry()) clock.sleep_towards(until);
}

/// What a wait is filed under now. Requires the lock.
tick timer_state::tick_of_expiry() const noexcept
{
  const tick when = when_.load(std::memory_order_relaxed);
  // One that had passed is asked for anew: a clock that virtual_time has set back may be before it
  // again.
  return when != no_tick ? when : core().clock.tick_for(expiry_);
}

void timer_state::prefetch_self() const noexcept
{
  prefetch(this);
  prefetch(&expiry_);
}

/// Asks for what a cancel that is put off will need, unless that is left to threads of another
/// shard (shard.hpp). The addresses may be those of a wait that is gone, which a prefetch does not
/// mind.
void timer_state::prefetch_latest(const home& local) const noexcept
{
  if (!is_at(local)) return;
  prefetch(latest_.load(std::memory_order_relaxed));
  const void* const cell = cell_.load(std::memory_order_relaxed);
  prefetch(cell);
  prefetch(chunk::of(cell));
}

}  // namespace asio_wheel::detail
