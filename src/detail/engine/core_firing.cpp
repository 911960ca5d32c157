// L2 engine: deadlines of operations, and what executors have refused.
#include "core.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

namespace asio_wheel::detail {

// Deadlines of operations.

void wheel_core::post_deadlines() noexcept
{
  if (deadline_delivery_.post(native, [this] { fire_deadlines(); })) return;
  deadline_delivery_.set_arrived();
  retry_later();
}

/// Fires the deadlines that have come or have ended. Calls no handlers.
void wheel_core::fire_deadlines()
{
  const thread_inside here(delivering_);
  deadline_delivery_.set_arrived();
  note_thread();
  std::uint64_t ended = 0;
  for (shard& sh : shards) {
    const locked lock(sh);
    sh.gather_deadlines();
    if (sh.has_ended()) ended |= std::uint64_t{1} << sh.number;
  }
  if (ended != 0 && give_way(ended)) return;
  ways_given_ = 0;
  struct at_end {
    wheel_core& core;
    ~at_end() { core.resume(); }
  } const then{*this};

  const time_point now = clock.now();
  next_wait next{};
  for (int i = 0; i < delivery::length; ++i) {
    wait_op* op = take_due_deadline(next, now);
    const time_point taken_up = op ? now : time_point();
    if (!op) op = take_ended_deadline(next);
    if (!op) return;
    op->ask(*next.at, wait_request::send(), taken_up);
  }
}

/// Lets handlers of ended waits begin first. Returns false if deadlines have waited often enough:
/// such handlers may end waits without end.
bool wheel_core::give_way(std::uint64_t ended) noexcept
{
  constexpr int most_ways = 256;
  if (++ways_given_ > most_ways) return false;
  has_given_way_ = true;  // before the delivery may end
  for (; ended != 0; ended &= ended - 1) {
    shard& sh = shards[static_cast<std::size_t>(std::countr_zero(ended))];
    bool post = false;
    {
      const locked lock(sh);
      post = sh.ended_delivery.request();
    }
    if (post) post_ended(sh);
  }
  return true;
}

/// A delivery of ended waits has ended that deadlines may have given way to.
void wheel_core::resume_deadlines(shard& sh) noexcept
{
  {
    const locked lock(sh);
    if (!sh.has_ended()) ways_given_ = 0;
  }
  if (has_given_way_.exchange(false))
    resume();
  else
    tell_driver(sh);
}

/// Takes the next due wait, if it is a deadline.
wait_op* wheel_core::take_due_deadline(next_wait& next, time_point now) noexcept
{
  const locked lock(due_mutex_);
  note_found();
  if (!due_.lock_first(next.at)) return nullptr;
  const locked at(*next.at, std::adopt_lock);
  const cancels_applied applied = next.at->assert_cancels_applied();
  if (!next.at->is_deadline_due(applied)) return nullptr;
  wait_op* const op = pop_due(*next.at, applied, next, now);
  keep_for(*op);  // it may be on its way through another context when this context goes
  return op;
}

wait_op* wheel_core::take_ended_deadline(next_wait& next) noexcept
{
  for (shard& sh : shards) {
    const locked lock(sh);
    wait_op* const op = sh.pop_deadline();
    if (!op) continue;
    next.at = &sh;
    keep_for(*op);
    return op;
  }
  return nullptr;
}

/// Requests deliveries for whatever waits for one.
void wheel_core::resume() noexcept
{
  bool due = false;
  {
    const locked lock(due_mutex_);
    note_found();
    due = !due_.empty() && due_delivery_.request();
  }
  if (due) post_due();
  for (shard& sh : shards) {
    bool fire = false;
    bool post = false;
    {
      const locked lock(sh);
      fire = sh.has_deadlines() && deadline_delivery_.request();
      post = sh.has_ended() && sh.ended_delivery.request();
    }
    if (fire) post_deadlines();
    if (post) post_ended(sh);
    tell_driver(sh);
  }
}

bool wheel_core::note_thread() noexcept
{
  if (has_several_threads_) return true;
  const auto here = std::this_thread::get_id();
  std::thread::id first;
  if (!first_thread_.compare_exchange_strong(first, here) && first != here)
    has_several_threads_ = true;
  return has_several_threads_;
}

std::uint64_t wheel_core::handlers_begun() const noexcept
{
  std::uint64_t n = 0;
  for (shard& sh : shards) {
    const locked lock(sh);
    n += sh.begun();
  }
  return n;
}

bool wheel_core::has_calls_ahead() const noexcept
{
  for (shard& sh : shards) {
    const locked lock(sh);
    if (sh.has_calls_ahead(sh.apply_deferred_cancels())) return true;
  }
  return false;
}

// What executors have refused.

void wheel_core::retry_later() noexcept
{
  const tick next = clock.tick_floor(clock.now()) + 1;
  maybe_tick expected = retry_at_;
  while (next < expected && !retry_at_.compare_exchange_weak(expected, next)) continue;
  wake_at(next);
}

/// Returns true, once, if it is time to try again what executors have refused.
bool wheel_core::take_retry(tick now) noexcept
{
  if (retry_at_.load(std::memory_order_relaxed) > now) return false;
  retry_at_ = maybe_tick();
  return true;
}

void wheel_core::retry_refused() noexcept
{
  for (shard& sh : shards) {
    const locked lock(sh);
    sh.retry_refused();
  }
  resume();
}

}  // namespace asio_wheel::detail
