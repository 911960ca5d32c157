// L2 engine: stopping a wheel's clock and moving it, for virtual_time.
#include "core.hpp"

#include <algorithm>

namespace asio_wheel::detail {

bool wheel_core::stop_clock() noexcept
{
  {
    const locked lock(advance_mutex_);
    if (clock.is_stopped()) return false;
    clock.stop_at(clock.now());
  }
  rest_clock();
  return true;
}

/// Applies the deferred cancels, and moves all wheels to the clock.
std::uint64_t wheel_core::catch_up() noexcept
{
  for (shard& sh : shards) {
    erase_resting(sh);
    const locked lock(sh);
    sh.apply_deferred_cancels();
  }
  return advance_shards(clock.tick_floor(clock.now()));
}

bool wheel_core::step_clock(time_point limit) noexcept
{
  {
    // Waits that are due come first: their handlers may start waits that are due next.
    const locked lock(due_mutex_);
    if (found_in_ != 0 || due_delivery_.is_requested() || deadline_delivery_.is_requested() ||
        delivering_ != 0)
      return true;
  }
  std::uint64_t due = 0;
  bool retry = false;
  {
    const locked lock(advance_mutex_);
    due = catch_up();
    // Repeats while slots only cascade.
    while (due == 0 && !retry) {
      const maybe_tick next = next_tick();
      if (next == at_once) return true;
      const time_point t = clock.time_of(next);
      if (t > limit || t == time_point::max()) return false;
      clock.stop_at(std::max(clock.now(), t));
      retry = take_retry(*next);
      due = advance_shards(*next);
    }
  }
  if (retry) retry_refused();
  if (due != 0) request_due(due);
  return true;
}

bool wheel_core::is_at_rest() noexcept
{
  std::uint64_t due = 0;
  {
    const locked lock(advance_mutex_);
    due = catch_up();
    if (due == 0) return clock.time_of(next_tick()) == time_point::max();
  }
  request_due(due);
  return false;
}

void wheel_core::start_clock() noexcept
{
  std::uint64_t due = 0;
  {
    const locked lock(advance_mutex_);
    due = catch_up();  // most of the work, while others go on; and sweeps
    // All in one step: another thread files a wait either by the old clock and wheels or by the
    // new.
    const locked order(due_mutex_);
    const locked all(shards);
    const tick reached = clock.tick_floor(clock.now());
    const tick present = clock.tick_floor(clock.running_now());
    for (shard& sh : shards) {
      sh.assert_held();  // by `all`
      // Waits that have come by the stopped clock are due, and stay due.
      if (sh.advance(reached)) due |= std::uint64_t{1} << sh.number;
      sh.rewind(present);
    }
    due_.rewound();
    passed_.store(present, std::memory_order_relaxed);
    doubt_ends_.store({}, std::memory_order_relaxed);
    clock.run();
  }
  if (due != 0) request_due(due);
  if (retry_at_.load()) retry_later();  // by the clock that runs
  rest_clock();
}

}  // namespace asio_wheel::detail
