// L2 service: setting and cancelling a timer.
#include <asio_wheel/detail/service/timer_state.hpp>

#include <asio_wheel/detail/ground/prefetch.hpp>

#include <utility>

namespace asio_wheel::detail {

timer_state::timer_state(wheel_core& c) noexcept : home_(&c.local())
{
  intrusive_ptr_add_ref(&c);
}

timer_state::timer_state(timer_state&& other) noexcept : timer_state(other.core())
{
  *this = std::move(other);
}

timer_state& timer_state::operator=(timer_state&& other) noexcept
{
  assign(other, [] {});
  return *this;
}

timer_state::~timer_state()
{
  cancel();
  intrusive_ptr_release(&core());
}

void timer_state::take_over(timer_state& other, const section& s) noexcept
{
  home_ = &s.at();
  waits_.splice_back(other.waits_);
  latest_ = other.latest_.load(std::memory_order_relaxed);
  cell_ = other.cell_.load(std::memory_order_relaxed);
  expiry_ = std::exchange(other.expiry_, {});
  when_ = other.when_.exchange({});
}

time_point timer_state::expiry() const noexcept
{
  const section s(*this);
  return expiry_;
}

std::size_t timer_state::expires_at(time_point deadline) noexcept
{
  return set_expiry(deadline, core().clock().tick_for(deadline));
}

std::size_t timer_state::expires_after(duration delay) noexcept
{
  prefetch_self();
  const auto early = wheel_clock::early_start_of_delay();
  prefetch_latest();
  const wheel_clock& clock = core().clock();
  const time_point deadline = clock.deadline_after(delay, early);
  return set_expiry(deadline, clock.tick_for(deadline, delay));
}

std::size_t timer_state::set_expiry(time_point deadline, tick when) noexcept
{
  section s(*this);
  const std::size_t n = cancel_waits(s);
  expiry_ = deadline;
  when_.store(when, std::memory_order_relaxed);
  // A wait is about to be started, no doubt; now that there is none, it can be at home here.
  home* const local = &core().local();
  if (&s.at() != local) home_.store(local, std::memory_order_release);
  return n;
}

std::size_t timer_state::cancel() noexcept
{
  prefetch_latest();
  section s(*this);
  return cancel_waits(s);
}

std::size_t timer_state::cancel_waits(section& s) noexcept
{
  if (waits_.empty()) return 0;
  return s.cancel(waits_, &s.at() == &core().local());
}

std::size_t timer_state::cancel_one() noexcept
{
  section s(*this);
  return s.cancel_one(waits_);
}

void timer_state::start(timer_wait_op& op)
{
  start(op, [this] { return tick_of_expiry(); });
}

/// What a wait is filed under now. Requires the lock.
tick timer_state::tick_of_expiry() noexcept
{
  const wheel_clock& clock = core().clock();
  tick when = when_.load(std::memory_order_relaxed);
  // Filed under the present tick because it had passed when it was set. But a clock that
  // virtual_time has set back may be before it again.
  if (clock.time_of(when) < expiry_ && clock.now() < expiry_) {
    when = clock.tick_ceil(expiry_);
    when_.store(when, std::memory_order_relaxed);
  }
  return when;
}

/// Takes a timer without waits to another home.
void timer_state::move_to(home& local) noexcept
{
  const section s(*this);
  if (waits_.empty()) home_.store(&local, std::memory_order_release);
}

void timer_state::prefetch_self() const noexcept
{
  prefetch(this);
  prefetch(&expiry_);
}

/// Asks for what a cancel that is put off will need, unless that is left to threads of another
/// shard (put_off_cancels.hpp). The addresses may be those of a wait that is gone, which a prefetch
/// does not mind.
void timer_state::prefetch_latest() const noexcept
{
  if (home_.load(std::memory_order_relaxed) != &core().local()) return;
  prefetch(latest_.load(std::memory_order_relaxed));
  timing_wheel::prefetch_cell(cell_.load(std::memory_order_relaxed));
}

}  // namespace asio_wheel::detail
