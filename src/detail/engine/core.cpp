// L2 engine: starting waits, ending all of them, and counting.
#include "core.hpp"

#include <algorithm>
#include <array>

namespace asio_wheel::detail {

wheel_core::wheel_core(asio::execution_context& c, const asio::any_io_executor& ex,
                       const wheel_options& given)
  : options(resolve(given)),
    context(c),
    executor(ex),
    native(ex),
    clock(options.clock, options.tick),
    shards(*this, options, clock),
    driver_(native, c, clock, *this)
{}

wheel_core::~wheel_core() = default;

// Starting.

void wheel_core::start(wait_op& op, tick when)
{
  {
    shard_lock lock(shards.local());
    if (!file(lock, op, when)) return;
  }
  driver_.wake_at(when);
}

bool wheel_core::file(shard_lock& lock, wait_op& op, tick& when, bool announced)
{
  if (lock.at().is_closed()) {
    lock.destroy(op);
    return false;
  }
  if (options.max_pending != 0 && !announced) {
    if (pending_.fetch_add(1, std::memory_order_relaxed) >= options.max_pending) {
      pending_.fetch_sub(1, std::memory_order_relaxed);
      lock.unfinished().reject(op);
      return false;
    }
  }
  try {
    // A shard that had nothing to do may be behind the others. Every shard replaces a tick that a
    // pass has overtaken by the pass's tick, so that the shards agree on the order.
    if (when == at_once) [[unlikely]]
      file_overdue(op, lock.at());
    else
      when = lock.at().file(op, std::max(when, passed_.load(std::memory_order_relaxed)));
  } catch (...) {
    count_ended(1);
    throw;
  }
  return true;
}

/// Files a wait for a past time: under the present tick, so that it is due behind everything that
/// was due before.
void wheel_core::file_overdue(wait_op& op, shard& sh)
{
  const tick present = clock.tick_floor(clock.now());
  const tick passed = passed_.load(std::memory_order_relaxed);
  static_cast<void>(sh.file(op, std::max(present, passed)));
}

void wheel_core::wake_at(maybe_tick when) noexcept
{
  driver_.wake_at(when);
}

void wheel_core::keep_for(wait_op& deadline) noexcept
{
  if (deadline.keeps_core_) return;
  deadline.keeps_core_ = true;
  intrusive_ptr_add_ref(this);
}

void wheel_core::count_ended(std::size_t n) noexcept
{
  if (options.max_pending != 0) pending_.fetch_sub(n, std::memory_order_relaxed);
}

void wheel_core::count_started(std::size_t n) noexcept
{
  if (options.max_pending != 0) pending_.fetch_add(n, std::memory_order_relaxed);
}

void wheel_core::cancel_wake_up(shard& sh, tick unneeded) noexcept
{
  if (unneeded == tick{}) erase_resting(sh);
  driver_.cancel_wake_up(unneeded);
}

/// Erases the resting waits, some at a time.
void wheel_core::erase_resting(shard& sh) noexcept
{
  std::array<wait_op*, shard::step> erased;
  std::size_t n = 0;
  do {
    n = 0;
    {
      const locked lock(sh);
      while (n < erased.size()) {
        wait_op* const op = sh.pop_resting();
        if (!op) break;
        erased[n++] = op;
      }
    }
    for (std::size_t i = 0; i < n; ++i) erased[i]->ask(sh, wait_request::release());
  } while (n == erased.size());
}

// The pressure.

void wheel_core::set_pressure(double p) noexcept
{
  is_pressure_set_ = true;
  const time_point sweep = pressure_.set(p);
  if (sweep != time_point::max()) wake_at(clock.tick_for(sweep));
}

// All waits at once.

std::size_t wheel_core::cancel_all()
{
  std::size_t n = 0;
  for (shard& sh : shards) {
    erase_resting(sh);
    shard_lock lock(sh);
    n += lock.cancel_all();
  }
  return n;
}

std::size_t wheel_core::pending() const noexcept
{
  std::uint64_t n = 0;
  for (shard& sh : shards) {
    const locked lock(sh);
    n += sh.pending();
  }
  // Each shard is asked at another moment, so the sum may pass the limit even if the waits never
  // do.
  if (options.max_pending != 0) n = std::min<std::uint64_t>(n, options.max_pending);
  return static_cast<std::size_t>(n);
}

wheel_stats wheel_core::stats() const noexcept
{
  wheel_stats stats;
  for (shard& sh : shards) {
    const locked lock(sh);
    sh.add_to(stats);
  }
  stats.wakeups = driver_.wakeups();
  stats.abandoned = abandoned;
  const locked lock(due_mutex_);
  stats.largest_batch = std::max(largest_burst_, burst_);
  return stats;
}

/// Leaves a deadline to its operation, and keeps the core for it.
void wheel_core::destroy_later(wait_op& op, wait_list& all) noexcept
{
  if (op.shared_ && !shard::is_finished(op))
    keep_for(op);
  else
    all.push_back(op);
}

void wheel_core::close() noexcept
{
  shards.close();
  wait_list all;
  for (shard& sh : shards) {
    erase_resting(sh);
    const locked lock(sh);
    sh.close();
    while (wait_op* const op = sh.pop_remaining()) destroy_later(*op, all);
  }
  for (shard& sh : shards) sh.ended_delivery.close();
  due_delivery_.close();
  deadline_delivery_.close();
  posting_gate.close();
  driver_.close();

  // Handlers may own timers and start waits as they go; they find the shards closed.
  while (wait_op* op = all.pop_front()) op->ask(*shards.begin(), wait_request::destroy());
}

}  // namespace asio_wheel::detail
