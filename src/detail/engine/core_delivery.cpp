// L2 engine: passes, and the deliveries that call handlers.
#include "core.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

namespace asio_wheel::detail {

// Passes.

/// Sweeps if the pressure needs it, and moves all wheels to `now`. Leaves a shard with nothing to
/// do alone. Returns a bit for each shard where something is due.
std::uint64_t wheel_core::advance_shards(tick now) noexcept
{
  passed_.store(now, std::memory_order_relaxed);
  if (has_sent_.load(std::memory_order_relaxed)) {
    has_sent_.store(false, std::memory_order_relaxed);
    doubt_ends_.store(now + (ticks_in_doubt + 1), std::memory_order_relaxed);
  }
  if (is_pressure_set_) {
    while (pressure_.sweep() == pressure::at_once && clock.is_stopped()) continue;
  }
  std::uint64_t due = 0;
  for (shard& sh : shards) {
    if (sh.next_tick() > now) continue;
    const locked lock(sh);
    if (sh.advance(now)) due |= std::uint64_t{1} << sh.number;
  }
  return due;
}

/// The first tick at which advance_shards() has anything to do; none if no wait is filed.
maybe_tick wheel_core::next_tick() noexcept
{
  maybe_tick next;
  for (shard& sh : shards) next = std::min(next, sh.next_tick());
  if (next && is_pressure_set_) {
    const time_point sweep = pressure_.next_sweep();
    next = sweep <= clock.now() ? at_once : std::min(*next, clock.tick_ceil(sweep));
  }
  next = std::min(next, retry_at_.load());
  if (next) return next;
  // No wait is filed. But a thread outside the context may have cancelled a wait, and not yet
  // posted its delivery. Until then, passes keep the context from running out of work.
  if (deadline_delivery_.is_requested() || is_ended_requested()) return at_once;
  return {};
}

/// Moves all wheels to the present. Waits that are due are delivered after the pass.
void wheel_core::pass()
{
  const locked lock(advance_mutex_);
  const time_point now = clock.now();
  const tick present = clock.tick_floor(now);
  if (take_retry(present)) is_retry_due_ = true;
  const std::uint64_t due = advance_shards(present);
  if (due == 0) return;
  found_in_ |= due;
  found_due_ = now;
}

// Delivering what is due.

/// Something was found due in these shards: requests its delivery.
void wheel_core::request_due(std::uint64_t found) noexcept
{
  found_in_ |= found;
  {
    const locked lock(due_mutex_);
    if (!due_delivery_.request()) return;
  }
  post_due();
}

void wheel_core::post_due() noexcept
{
  if (due_delivery_.post(native, [this] { deliver_due(clock.now(), false); })) return;
  {
    const locked lock(due_mutex_);
    due_delivery_.set_arrived();
  }
  retry_later();
}

void wheel_core::follow_pass()
{
  if (is_retry_due_.load(std::memory_order_relaxed) && is_retry_due_.exchange(false))
    retry_refused();
  if (found_due_.load(std::memory_order_relaxed) == none_found) return;
  const time_point now = found_due_.exchange(none_found);
  if (now != none_found) deliver_due(now, true);
}

/// Calls handlers of what is due by `now`: half as many if waits have ended, too.
void wheel_core::deliver_due(time_point now, bool behind_pass)
{
  const thread_inside here(delivering_);
  if (!begin_delivery(behind_pass)) return;
  next_wait next{};
  struct at_end {  // also if a handler throws
    const next_wait& next;
    ~at_end()
    {
      if (next.idle) tell_driver(*next.idle);
    }
  } const then{next};
  for (int left = is_ended_requested() ? delivery::length / 2 : delivery::length; left != 0;
       --left) {
    take_due(next, now);
    if (next.post) post_due();
    if (next.refiled) wake_at(std::exchange(next.refiled, {}));
    if (next.op)
      next.op->ask(*next.at, next.request, now);
    else if (next.fire)
      post_deadlines();
    if (next.idle) tell_driver(*std::exchange(next.idle, nullptr));
    if (!next.more) return;
  }
}

/// Returns true if a delivery of ended waits is on its way.
bool wheel_core::is_ended_requested() const noexcept
{
  for (shard& sh : shards)
    if (sh.ended_delivery.is_requested()) return true;
  return false;
}

/// Returns false behind a pass if a delivery is on its way. It will find what the pass has found,
/// and two deliveries would call twice as many handlers between other work.
bool wheel_core::begin_delivery(bool behind_pass) noexcept
{
  const locked lock(due_mutex_);
  if (behind_pass) return !due_delivery_.is_requested();
  due_delivery_.set_arrived();
  return true;
}

/// Takes the next wait. Files lazy waits before it again if their deadline has moved, up to a limit
/// or until the driver is to be told of a shard.
void wheel_core::take_due(next_wait& next, time_point now) noexcept
{
  next.op = nullptr;
  next.post = next.fire = next.more = false;
  const locked lock(due_mutex_);
  if (deadline_delivery_.is_requested()) return;  // fire_deadlines() goes on with the rest
  note_found();
  int steps = 0;
  do {
    if (!due_.lock_first(next.at)) return;
    const locked at(*next.at, std::adopt_lock);
    const cancels_applied applied = next.at->assert_cancels_applied();
    if (next.at->is_deadline_due(applied)) {
      // The delivery that was given way to will resume this one.
      next.fire = !has_given_way_ && deadline_delivery_.request();
      return;
    }
    next.op = pop_due(*next.at, applied, next, now);
  } while (!next.op && !next.idle && ++steps < shard::step);
  if (next.op && was_pending(next.request.outcome())) count_ended(1);
  next.more = !due_.empty();
  if (next.more) next.post = due_delivery_.request();
}

/// Takes the next due wait of `sh`, the first shard of `due_`.
wait_op* wheel_core::pop_due(shard& sh, cancels_applied applied, next_wait& next,
                             time_point now) noexcept
{
  wait_op* const op = sh.pop_due(applied, now, next.request, next.refiled);
  if (op) {
    ++burst_;
    if (op->foreign_) note_sent();
  }
  if (!sh.has_due(applied)) {
    due_.drop_first();
    sh.note_if_idle();
    if (sh.has_unneeded()) next.idle = &sh;
    if (due_.empty()) largest_burst_ = std::max(largest_burst_, std::exchange(burst_, 0));
  }
  return op;
}

/// A wait is about to be sent to its handler's executor by this thread.
void wheel_core::note_sent() noexcept
{
  has_sent_.store(true, std::memory_order_relaxed);
  note_thread();
}

/// Adds to `due_` what passes have found.
void wheel_core::note_found() noexcept
{
  if (found_in_.load(std::memory_order_relaxed) == 0) return;
  for (std::uint64_t found = found_in_.exchange(0); found != 0; found &= found - 1)
    due_.add(shards[static_cast<std::size_t>(std::countr_zero(found))]);
}

// Delivering what has ended.

void wheel_core::post_ended(shard& sh) noexcept
{
  if (sh.ended_delivery.post(native, [this, at = &sh] { deliver_ended(*at); })) return;
  {
    const locked lock(sh);
    sh.ended_delivery.set_arrived();
  }
  retry_later();
}

void wheel_core::deliver_ended(shard& sh)
{
  struct at_end {  // also if a handler throws
    wheel_core& core;
    shard& at;
    ~at_end()
    {
      if (core.has_given_way_.load(std::memory_order_relaxed))
        core.resume_deadlines(at);
      else
        tell_driver(at);
    }
  } const then{*this, sh};
  next_wait next{};
  for (int left = begin_ended(sh); left != 0; --left) {
    take_ended(next, sh);
    if (next.post) post_ended(sh);
    if (next.op)
      next.op->ask(sh, next.request);
    else if (next.fire)
      post_deadlines();
    if (!next.more) return;
  }
}

/// Returns how many handlers a delivery of ended waits may call: less if several shards have such
/// deliveries, or if something is due.
int wheel_core::begin_ended(shard& sh) noexcept
{
  maybe_tick unneeded;
  {
    const locked lock(sh);
    sh.ended_delivery.set_arrived();
    sh.apply_deferred_cancels();
    unneeded = sh.take_unneeded();
  }
  if (unneeded) cancel_wake_up(sh, *unneeded);
  int sharing = 1;
  for (const shard& other : shards) sharing += &other != &sh && other.ended_delivery.is_requested();
  if (due_delivery_.is_requested()) sharing *= 2;
  return std::max(1, delivery::length / sharing);
}

void wheel_core::take_ended(next_wait& next, shard& sh) noexcept
{
  const locked lock(sh);
  next.op = nullptr;
  next.post = next.fire = next.more = false;
  if (deadline_delivery_.is_requested()) return;  // fire_deadlines() goes on with the rest
  next.op = sh.pop_ended(next.request);
  if (next.op && next.request == wait_request::send()) note_sent();
  // Elsewhere a function that lists a deadline requests this delivery. But drained deadlines are
  // listed here.
  if (!next.op && sh.has_deadlines() && deadline_delivery_.request()) {
    next.fire = true;
    return;
  }
  next.more = sh.has_ended();
  next.post = next.more && sh.ended_delivery.request();
}

}  // namespace asio_wheel::detail
