// L2 service: setting and cancelling a timer.
#include <asio_wheel/detail/service/timer_state.hpp>

#include <asio_wheel/detail/ground/prefetch.hpp>

#include <utility>

namespace asio_wheel::detail {

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
  const std::size_t n = timer_waits::cancel(s);
  expiry_ = deadline;
  when_.store(when, std::memory_order_relaxed);
  // A wait is about to be started, no doubt; now that there is none, it can be at home here.
  come_home(s);
  return n;
}

std::size_t timer_state::cancel() noexcept
{
  prefetch_latest();
  return timer_waits::cancel();
}

std::size_t timer_state::cancel_one() noexcept
{
  section s(*this);
  return s.cancel_one(waits());
}

void timer_state::start(timer_wait_op& op)
{
  timer_waits::start(
    op, [this] { return tick_of_expiry(); },
    [&] {
      latest_.store(&op, std::memory_order_relaxed);
      cell_.store(op.cell(), std::memory_order_relaxed);
    });
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
  if (!is_at_home()) return;
  prefetch(latest_.load(std::memory_order_relaxed));
  timing_wheel::prefetch_cell(cell_.load(std::memory_order_relaxed));
}

}  // namespace asio_wheel::detail
