// L2 service: starting waits, passes, and the deliveries that call handlers.
#include "core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <utility>

namespace asio_wheel::detail {
namespace {

/// Counts in how many threads there is one.
class one_of {
public:
  explicit one_of(std::atomic<int>& count) noexcept : count_(count) { ++count_; }
  one_of(const one_of&) = delete;
  one_of& operator=(const one_of&) = delete;
  ~one_of() { --count_; }

private:
  std::atomic<int>& count_;
};

}  // namespace

// Sections.

section::section(home& h) noexcept : at(h)
{
  h.lock();
}

section::section(home& h, std::adopt_lock_t) noexcept : at(h) {}

section::~section()
{
  if (unfinished_)
    finish(at, destroyed_);
  else
    at.unlock();
}

/// Ends a section that has left something to be done.
void section::finish(home& h, wait_op* destroyed) noexcept
{
  wheel_core& c = h.core;
  const bool post = h.has_ended() && h.ended_delivery_.request();
  const bool fire = h.has_deadlines() && c.firing_.request();
  const tick unneeded = h.take_unneeded();
  h.unlock();

  if (fire) c.post_firing();
  if (post) c.post_ended(h);
  if (unneeded != no_tick) c.forget(h, unneeded);
  // The core may go with it.
  if (destroyed) destroyed->end(h, wait_outcome::destroyed);
}

std::size_t section::count(std::size_t cancelled) noexcept
{
  if (cancelled == 0) return 0;
  at.core.count_ended(cancelled);
  // A delivery that is on its way will find them.
  unfinished_ |= !at.ended_delivery_.is_requested() || at.has_unneeded();
  return cancelled;
}

std::size_t section::cancel(wait_op& op) noexcept
{
  return count(at.cancel(op));
}

std::size_t section::cancel(timer_wait_list& waits, bool at_home) noexcept
{
  return count(at.cancel(waits, at_home));
}

std::size_t section::cancel_one(timer_wait_list& waits) noexcept
{
  return count(at.cancel_one(waits));
}

std::size_t section::cancel_all() noexcept
{
  return count(at.cancel_all());
}

void section::file_due(wait_op& op) noexcept
{
  at.core.count_started(1);
  unfinished().file_due(op);
}

home& section::unfinished() noexcept
{
  unfinished_ = true;
  return at;
}

void section::destroy(wait_op& op) noexcept
{
  unfinished_ = true;
  destroyed_ = &op;
}

// The core.

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
    section s(shards.local());
    if (!file(s, op, when)) return;
  }
  driver_.wake_at(when);
}

bool wheel_core::file(section& s, wait_op& op, tick& when, bool announced)
{
  if (s.at.is_closed()) {
    s.destroy(op);
    return false;
  }
  if (options.max_pending != 0 && !announced) {
    if (pending_.fetch_add(1, std::memory_order_relaxed) >= options.max_pending) {
      pending_.fetch_sub(1, std::memory_order_relaxed);
      s.unfinished().reject(op);
      return false;
    }
  }
  try {
    // A shard that had nothing to do may be behind the others. A tick that a pass has overtaken is
    // taken for that of the pass everywhere, so that the shards agree on the order.
    if (when == at_once) [[unlikely]]
      file_overdue(op, s.at);
    else
      when = s.at.file(op, std::max(when, passed_.load(std::memory_order_relaxed)), s.at);
  } catch (...) {
    count_ended(1);
    throw;
  }
  return true;
}

/// Files a wait for a time that has passed: under the present tick, so that it is due behind
/// everything that was due before.
void wheel_core::file_overdue(wait_op& op, home& h)
{
  const tick present = clock.tick_floor(clock.now());
  const tick passed = passed_.load(std::memory_order_relaxed);
  static_cast<void>(h.file(op, std::max(present, passed), h));
}

void wheel_core::wake_at(tick when) noexcept
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

void wheel_core::tell_driver(home& h) noexcept
{
  if (!h.has_unneeded()) return;
  h.lock();
  const tick unneeded = h.take_unneeded();
  h.unlock();
  if (unneeded != no_tick) h.core.forget(h, unneeded);
}

void wheel_core::forget(home& h, tick unneeded) noexcept
{
  if (unneeded == tick{}) erase_resting(h);
  driver_.forget(unneeded);
}

/// Erases waits that rest, some at a time.
void wheel_core::erase_resting(home& h) noexcept
{
  std::array<wait_op*, shard::step> erased;
  std::size_t n = 0;
  do {
    n = 0;
    {
      const std::lock_guard lock(h);
      while (n < erased.size()) {
        wait_op* const op = h.pop_resting();
        if (!op) break;
        erased[n++] = op;
      }
    }
    for (std::size_t i = 0; i < n; ++i) erased[i]->end(h, wait_outcome::released);
  } while (n == erased.size());
}

// Passes.

/// Moves all wheels to `now`, with what the pressure has brought there. A shard with nothing to do
/// by then is left alone. Returns a bit for each shard where something is due.
std::uint64_t wheel_core::advance_shards(tick now) noexcept
{
  passed_.store(now, std::memory_order_relaxed);
  if (is_pressure_set_) {
    while (pressure_.sweep() == pressure::at_once && clock.is_stopped()) continue;
  }
  std::uint64_t due = 0;
  for (home* h = shards.latest(); h; h = h->older) {
    if (h->next_tick() > now) continue;
    const std::lock_guard lock(*h);
    if (h->advance(now)) due |= std::uint64_t{1} << h->number;
  }
  return due;
}

/// The first tick to which advance_shards() has anything to do; no_tick if no wait is filed.
tick wheel_core::next_tick() noexcept
{
  tick next = no_tick;
  for (home* h = shards.latest(); h; h = h->older) next = std::min(next, h->next_tick());
  if (next != no_tick && is_pressure_set_) {
    const time_point sweep = pressure_.next_sweep();
    next = sweep <= clock.now() ? at_once : std::min(next, clock.tick_ceil(sweep));
  }
  next = std::min(next, retry_at_.load());
  if (next != no_tick) return next;
  // Without a wait there is nothing to bring near. But a thread that the context does not run may
  // have cancelled one, and not have posted its delivery yet. Until it has, passes are what keeps
  // the context from running out of work.
  if (firing_.is_requested()) return at_once;
  for (home* h = shards.latest(); h; h = h->older)
    if (h->ended_delivery_.is_requested()) return at_once;
  return no_tick;
}

/// Moves all wheels to the present. The delivery of what is due follows the pass.
void wheel_core::pass()
{
  const std::lock_guard lock(advance_mutex_);
  const time_point now = clock.now();
  const tick present = clock.tick_floor(now);
  if (is_retry_due(present)) is_retry_due_ = true;
  const std::uint64_t due = advance_shards(present);
  if (due == 0) return;
  found_in_ |= due;
  found_due_ = now;
}

// Delivering what is due.

/// Something was found due in these shards: sees to it that it is delivered.
void wheel_core::request_due(std::uint64_t found) noexcept
{
  found_in_ |= found;
  {
    const std::lock_guard lock(due_mutex_);
    if (!due_delivery_.request()) return;
  }
  post_due();
}

void wheel_core::post_due() noexcept
{
  if (due_delivery_.post(native, [this] { deliver_due(clock.now(), false); })) return;
  {
    const std::lock_guard lock(due_mutex_);
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

/// Calls handlers of what is due by `now`.
void wheel_core::deliver_due(time_point now, bool behind_pass)
{
  const one_of here(delivering_);
  if (!begin_delivery(behind_pass)) return;
  next_wait next{};
  struct at_end {  // also if a handler throws
    const next_wait& next;
    ~at_end()
    {
      if (next.idle) tell_driver(*next.idle);
    }
  } const then{next};
  for (int i = 0; i < delivery::length; ++i) {
    take_due(next, now);
    if (next.post) post_due();
    if (next.renewed != no_tick) wake_at(std::exchange(next.renewed, no_tick));
    if (next.op)
      next.op->end(*next.at, next.outcome, now);
    else if (next.fire)
      post_firing();
    if (next.idle) tell_driver(*std::exchange(next.idle, nullptr));
    if (!next.more) return;
  }
}

/// Returns false behind a pass if a delivery is on its way. That finds what the pass has found, and
/// two of them would call twice as many handlers between two turns of other work.
bool wheel_core::begin_delivery(bool behind_pass) noexcept
{
  const std::lock_guard lock(due_mutex_);
  if (behind_pass) return !due_delivery_.is_requested();
  due_delivery_.set_arrived();
  return true;
}

/// Takes the next wait, or files again as many lazy ones as come before that, up to a limit.
void wheel_core::take_due(next_wait& next, time_point now) noexcept
{
  next.op = nullptr;
  next.post = next.fire = next.more = false;
  const std::lock_guard lock(due_mutex_);
  if (firing_.is_requested()) return;  // which goes on with the rest
  note_found();
  int steps = 0;
  do {
    next.at = due_.lock_first();
    if (!next.at) return;
    const std::lock_guard at(*next.at, std::adopt_lock);
    if (next.at->is_deadline_due()) {
      next.fire = firing_.request();
      return;
    }
    next.op = next.at->pop_due(now, next.outcome, next.renewed);
    if (!next.at->has_due()) {
      due_.drop_first();
      next.at->note_if_idle();
      if (next.at->has_unneeded()) next.idle = next.at;
    }
  } while (!next.op && ++steps < shard::step);
  if (next.op) {
    ++burst_;
    if (next.outcome == wait_outcome::expired || next.outcome == wait_outcome::timed_out)
      count_ended(1);
  }
  next.more = !due_.empty();
  if (next.more)
    next.post = due_delivery_.request();
  else
    largest_burst_ = std::max(largest_burst_, std::exchange(burst_, 0));
}

/// Tells `due_` of what passes have found.
void wheel_core::note_found() noexcept
{
  if (found_in_.load(std::memory_order_relaxed) == 0) return;
  for (std::uint64_t found = found_in_.exchange(0); found != 0; found &= found - 1)
    due_.add(shards[static_cast<std::size_t>(std::countr_zero(found))]);
}

wait_outcome wheel_core::begin(wait_op& op, home& h, time_point taken_up) noexcept
{
  tick renewed = no_tick;
  wait_outcome outcome{};
  {
    const std::lock_guard lock(h);
    outcome = h.begin(op, taken_up, renewed);
  }
  if (outcome == wait_outcome::expired || outcome == wait_outcome::timed_out) count_ended(1);
  if (renewed != no_tick) wake_at(renewed);
  return outcome;
}

void wheel_core::drop(wait_op& op, home& h) noexcept
{
  const std::lock_guard lock(h);
  if (h.drop(op)) count_ended(1);
}

// Delivering what has ended.

void wheel_core::post_ended(home& h) noexcept
{
  if (h.ended_delivery_.post(native, [this, at = &h] { deliver_ended(*at); })) return;
  {
    const std::lock_guard lock(h);
    h.ended_delivery_.set_arrived();
  }
  retry_later();
}

void wheel_core::deliver_ended(home& h)
{
  struct at_end {  // also if a handler throws
    home& at;
    ~at_end() { tell_driver(at); }
  } const then{h};
  call_ended(h);
}

void wheel_core::call_ended(home& h)
{
  next_wait next{};
  for (int left = begin_ended(h); left != 0; --left) {
    take_ended(next, h);
    if (next.post) post_ended(h);
    if (next.op)
      next.op->end(h, next.outcome);
    else if (next.fire)
      post_firing();
    if (!next.more) return;
  }
}

/// Returns how many handlers a delivery of what has ended calls: less if several shards have a
/// burst of them.
int wheel_core::begin_ended(home& h) noexcept
{
  tick unneeded = no_tick;
  {
    const std::lock_guard lock(h);
    h.ended_delivery_.set_arrived();
    h.settle();
    unneeded = h.take_unneeded();
  }
  if (unneeded != no_tick) forget(h, unneeded);
  int sharing = 1;
  for (home* other = shards.latest(); other; other = other->older)
    sharing += other != &h && other->ended_delivery_.is_requested();
  return std::max(1, delivery::length / sharing);
}

void wheel_core::take_ended(next_wait& next, home& h) noexcept
{
  const std::lock_guard lock(h);
  next.op = nullptr;
  next.post = next.fire = next.more = false;
  if (firing_.is_requested()) return;  // which goes on with the rest
  next.op = h.pop_ended(next.outcome);
  // Whoever lists a deadline requests that it fires. But what was drained is listed here.
  if (!next.op && h.has_deadlines() && firing_.request()) {
    next.fire = true;
    return;
  }
  next.more = h.has_ended();
  next.post = next.more && h.ended_delivery_.request();
}

// Deadlines of operations.

void wheel_core::post_firing() noexcept
{
  if (firing_.post(native, [this] { fire_deadlines(); })) return;
  firing_.set_arrived();
  retry_later();
}

/// Lets deadlines fire that have come or have ended. Calls no handlers.
void wheel_core::fire_deadlines()
{
  const one_of here(delivering_);
  firing_.set_arrived();
  struct at_end {
    wheel_core& core;
    ~at_end() { core.resume(); }
  } const then{*this};

  for (home* h = shards.latest(); h; h = h->older) {
    const std::lock_guard lock(*h);
    h->gather_deadlines();
  }
  const time_point now = clock.now();
  next_wait next{};
  for (int i = 0; i < delivery::length; ++i) {
    wait_op* op = take_due_deadline(next, now);
    if (!op) op = take_ended_deadline(next);
    if (!op) return;
    op->end(*next.at, wait_outcome::undecided, next.taken_up);
  }
}

/// Takes the next wait that is due, if it is a deadline.
wait_op* wheel_core::take_due_deadline(next_wait& next, time_point now) noexcept
{
  const std::lock_guard lock(due_mutex_);
  note_found();
  next.at = due_.lock_first();
  if (!next.at) return nullptr;
  const std::lock_guard at(*next.at, std::adopt_lock);
  if (!next.at->is_deadline_due()) return nullptr;
  wait_op* const op = next.at->pop_due(now, next.outcome, next.renewed);
  if (!next.at->has_due()) {
    due_.drop_first();
    next.at->note_if_idle();
  }
  next.taken_up = now;
  keep_for(*op);  // it may be on its way through another context when this one goes
  ++burst_;
  if (due_.empty()) largest_burst_ = std::max(largest_burst_, std::exchange(burst_, 0));
  return op;
}

wait_op* wheel_core::take_ended_deadline(next_wait& next) noexcept
{
  for (home* h = shards.latest(); h; h = h->older) {
    const std::lock_guard lock(*h);
    wait_op* const op = h->pop_deadline();
    if (!op) continue;
    next.at = h;
    next.taken_up = {};
    keep_for(*op);
    return op;
  }
  return nullptr;
}

/// Sees to it that whatever waits for a delivery gets one.
void wheel_core::resume() noexcept
{
  bool due = false;
  {
    const std::lock_guard lock(due_mutex_);
    note_found();
    due = !due_.empty() && due_delivery_.request();
  }
  if (due) post_due();
  for (home* h = shards.latest(); h; h = h->older) {
    bool fire = false;
    bool post = false;
    {
      const std::lock_guard lock(*h);
      fire = h->has_deadlines() && firing_.request();
      post = h->has_ended() && h->ended_delivery_.request();
    }
    if (fire) post_firing();
    if (post) post_ended(*h);
    tell_driver(*h);
  }
}

// What executors have refused.

bool wheel_core::keep_refused(wait_op& op, home& h) noexcept
{
  {
    const std::lock_guard lock(h);
    if (h.is_closed()) return false;
    h.keep_refused(op);
  }
  retry_later();
  return true;
}

void wheel_core::retry_later() noexcept
{
  const tick next = clock.tick_floor(clock.now()) + 1;
  tick expected = retry_at_;
  while (next < expected && !retry_at_.compare_exchange_weak(expected, next)) continue;
  wake_at(next);
}

bool wheel_core::is_retry_due(tick now) noexcept
{
  if (retry_at_.load(std::memory_order_relaxed) > now) return false;
  retry_at_ = no_tick;
  return true;
}

void wheel_core::retry_refused() noexcept
{
  for (home* h = shards.latest(); h; h = h->older) {
    const std::lock_guard lock(*h);
    h->retry_refused();
  }
  resume();
}

std::uint64_t wheel_core::handlers_begun() const noexcept
{
  std::uint64_t n = 0;
  for (home* h = shards.latest(); h; h = h->older) {
    const std::lock_guard lock(*h);
    n += h->begun();
  }
  return n;
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
  ++cancel_alls_;
  std::size_t n = 0;
  for (home* h = shards.latest(); h; h = h->older) {
    erase_resting(*h);
    section s(*h);
    n += s.cancel_all();
  }
  ++cancel_alls_;
  return n;
}

std::size_t wheel_core::pending() const noexcept
{
  std::uint64_t n = 0;
  for (home* h = shards.latest(); h; h = h->older) {
    const std::lock_guard lock(*h);
    n += h->pending();
  }
  // Each shard was asked at another moment, so the sum may pass a limit that the waits never do.
  if (options.max_pending != 0) n = std::min<std::uint64_t>(n, options.max_pending);
  return static_cast<std::size_t>(n);
}

wheel_stats wheel_core::stats() const noexcept
{
  wheel_stats stats;
  for (home* h = shards.latest(); h; h = h->older) {
    const std::lock_guard lock(*h);
    h->add_to(stats);
  }
  stats.wakeups = driver_.wakeups();
  stats.abandoned = abandoned;
  const std::lock_guard lock(due_mutex_);
  stats.largest_batch = std::max(largest_burst_, burst_);
  return stats;
}

/// A deadline is left to its operation, which may need the core again.
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
  for (home* h = shards.latest(); h; h = h->older) {
    erase_resting(*h);
    const std::lock_guard lock(*h);
    h->close();
    while (wait_op* const op = h->pop_remaining()) destroy_later(*op, all);
  }
  for (home* h = shards.latest(); h; h = h->older) h->ended_delivery_.close();
  due_delivery_.close();
  firing_.close();
  posting_.close();
  driver_.close();

  // Handlers may own timers and start waits as they go; they find the shards closed.
  while (wait_op* op = all.pop_front()) op->end(*shards.latest(), wait_outcome::destroyed);
}

}  // namespace asio_wheel::detail
