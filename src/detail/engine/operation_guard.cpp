// L2 engine: files and ends the wait that stands for guarded operations.
#include <asio_wheel/detail/engine/operation_guard.hpp>

#include <asio_wheel/detail/engine/wait_handler.hpp>

#include "core.hpp"

#include <algorithm>
#include <utility>

namespace asio_wheel::detail {

operation_guard::operation_guard(wheel_core& c, moving_deadline* source)
  : lazy_wait_op(&operation_guard::do_ask, {}),
    core_(&c),
    shard_(c.shards.local()),
    source_(source)
{
  set_deadline(*this);
}

time_point operation_guard::deadline() const noexcept
{
  shard_.assert_held();  // the caller asks under the lock of the waits
  // A resting wait stays filed. Any other wait without an operation must end, and not be filed
  // again.
  if (!source_ && shard::rests(*this)) return time_point::max();
  if (closed_ || (guarded_.empty() && !source_)) return time_point::min();
  if (source_) return source_->guarded_until();
  time_point earliest = time_point::max();
  guarded_.for_each(
    [&](wait_op& op) { earliest = std::min(earliest, static_cast<guarded_wait&>(op).until_); });
  return earliest;
}

void operation_guard::set_filed_for(time_point t) noexcept
{
  filed_for_.store(std::min(t, guarded_by::latest), std::memory_order_relaxed);
}

/// Notes the time that the wait is about to be filed for, and returns its tick.
tick operation_guard::note_filing() noexcept
{
  const time_point until = deadline();
  set_filed_for(until);
  return core_->clock.tick_for(until);
}

/// Files its wait. Returns a tick to wake up at, if any.
maybe_tick operation_guard::file(shard_lock& lock) noexcept
{
  tick when = note_filing();
  core_->shards.note_start(shard_);
  try {
    const bool filed = core_->file(lock, *this, when);
    intrusive_ptr_add_ref(this);  // a rejected wait ends as rejected, and the operations with it
    return filed ? maybe_tick(when) : maybe_tick();
  } catch (...) {
    set_unfiled();
    // The operations are under way, and might never end without a deadline.
    while (wait_op* const op = guarded_.pop_front()) lock.unfinished().reject(*op);
    return {};
  }
}

void operation_guard::insert(guarded_wait& deadline) noexcept
{
  if (shard::rests(*this)) shard_.stop_resting(*this);
  shard_.guard(deadline, guarded_);
  has_started_.store(true, std::memory_order_relaxed);
}

void operation_guard::erase(guarded_wait& deadline) noexcept
{
  wait_list::erase(deadline);
  shard::release(deadline);
  set_ended();
}

maybe_tick operation_guard::add(shard_lock& lock, guarded_wait& deadline) noexcept
{
  // Without a context or an owner, the operation goes on unguarded.
  if (shard_.is_closed() || closed_) return {};
  const bool in_time = is_filed_by(deadline.until_);
  insert(deadline);
  if (in_time) return {};
  return is_filed() ? refile() : file(lock);
}

operation_guard::guarding operation_guard::guard_again(guarded_wait& deadline,
                                                       maybe_tick& refiled) noexcept
{
  shard_.assert_held();  // the deadline has this shard, too
  if (closed_) {
    if (shard_.drop_deadline(deadline)) core_->count_ended(1);
    return guarding::goes_on;
  }
  if (shard_.is_closed() || !shard_.is_to_expire(deadline)) return guarding::expired;
  const wheel_clock& clock = core_->clock;
  const time_point until = source_ ? this->deadline() : deadline.until_;
  if (until <= clock.now()) return guarding::expired;
  const tick when = clock.tick_ceil(until);
  if (is_filed()) {
    refiled = shard_.refile_earlier(*this, when);
    if (!is_filed_by(until)) set_filed_for(until);
  } else {
    core_->shards.note_start(shard_);
    try {
      refiled = shard_.file(*this, when);
    } catch (...) {
      return guarding::rejected;
    }
    core_->count_started(1);
    intrusive_ptr_add_ref(this);
    set_filed_for(until);
  }
  if (shard_.drop_deadline(deadline)) core_->count_ended(1);
  insert(deadline);
  return guarding::goes_on;
}

maybe_tick operation_guard::refile_earlier() noexcept
{
  const shard_lock lock(shard_);
  return is_filed() ? refile() : maybe_tick();
}

/// Files the wait anew if the deadline is earlier now. Returns a tick to wake up at.
maybe_tick operation_guard::refile() noexcept
{
  const tick when = note_filing();
  shard_.apply_deferred_cancels();
  return shard_.refile_earlier(*this, when);
}

/// Erases the wait from the wheel, unless it has begun. Returns true if the wheel's count of this
/// is now the caller's.
bool operation_guard::erase_own_wait() noexcept
{
  if (!is_filed() || !shard::is_reachable(*this)) return false;
  if (shard::rests(*this))
    shard_.erase_resting(*this);
  else if (shard_.drop_deadline(*this))
    core_->count_ended(1);
  set_unfiled();
  return true;
}

void operation_guard::rest_if_idle() noexcept
{
  guard_ptr of_wheel;
  {
    const locked lock(shard_);
    if (!guarded_.empty() || shard::rests(*this)) return;
    // With a limit, a wait that is not pending must make room for others.
    if (is_filed() && shard_.may_rest(*this) && core_->options.max_pending == 0)
      shard_.start_resting(*this);
    else if (erase_own_wait())
      of_wheel = {this, false};
    else
      return;
  }
  tell_driver(shard_);
}

void operation_guard::set_error(const error_code& ec) noexcept
{
  const locked lock(shard_);
  error_ = ec;
}

error_code operation_guard::note_timeout(std::uint8_t cause) noexcept
{
  const locked lock(shard_);
  latest_cause_ = cause;
  return error_;
}

std::uint8_t operation_guard::latest_cause() noexcept
{
  const locked lock(shard_);
  return latest_cause_;
}

void operation_guard::move_to(moving_deadline& source) noexcept
{
  const locked lock(shard_);
  source_ = &source;
}

void operation_guard::feed(guard_ptr other)
{
  std::erase_if(fed_, [](const auto& g) { return g->is_closed(); });
  const auto is_other = [&](const auto& g) { return g.get() == other.get(); };
  if (std::none_of(fed_.begin(), fed_.end(), is_other)) fed_.push_back(std::move(other));
}

void operation_guard::pass_on(peer_activity what) const noexcept
{
  const time_point now = core_->clock.start_of_delay();
  for (const auto& g : fed_)
    g->note_own_activity(what, &g->core() == &core() ? now : g->core_->clock.start_of_delay());
}

void operation_guard::note_own_activity(peer_activity what, time_point now) noexcept
{
  const locked lock(shard_);
  if (source_ && !closed_) source_->note_activity(what, now);
}

bool operation_guard::is_closed() noexcept
{
  const locked lock(shard_);
  return closed_;
}

void operation_guard::close() noexcept
{
  guard_ptr of_wheel;
  {
    const locked lock(shard_);
    closed_ = true;
    if (erase_own_wait()) of_wheel = {this, false};
    set_unfiled();  // even if the wait has begun: nothing is guarded from here on
  }
  while (release_some()) continue;
  tell_driver(shard_);
}

void operation_guard::do_ask(wait_op& base, shard& at, wait_request request, time_point)
{
  auto& self = static_cast<operation_guard&>(base);
  if (request == wait_request::describe()) {
    self.shard_.assert_held();
    // The first operation speaks for all.
    if (wait_op* const op = self.guarded_.front()) return op->ask(at, request);
    return describe_handler<operation_guard>(at);
  }
  const guard_ptr of_wheel(&self, false);
  if (request == wait_request::release()) return;
  // A destroyed wait tells nobody: the operations see that the context is gone.
  self.end_guarded(request.is_call_or_send() ? request.outcome() : wait_outcome::none);
}

/// The wait has ended: tells the operations, in steps. Operations guarded from here on belong to
/// the next wait.
void operation_guard::end_guarded(wait_outcome outcome) noexcept
{
  std::uint64_t last = 0;
  {
    const locked lock(shard_);
    set_unfiled();
    last = shard_.divide_starts();
  }
  while (end_some(outcome, last)) continue;
  // After cancel_all(), operations that were guarded later go on.
  maybe_tick when;
  {
    shard_lock lock(shard_);
    if (!guarded_.empty() && !is_filed() && !closed_ && !shard_.is_closed()) when = file(lock);
  }
  core_->wake_at(when);
}

/// Ends some of the operations guarded up to sequence `last`. Returns true if there may be more.
bool operation_guard::end_some(wait_outcome outcome, std::uint64_t last) noexcept
{
  shard_lock lock(shard_);
  for (int i = 0; i < shard::step; ++i) {
    wait_op* const op = guarded_.front();
    if (!op || shard_.is_later(*op, last)) return false;
    const bool is_cancelled = shard_.is_all_cancelled(*op);
    if (outcome == wait_outcome::cancelled && !is_cancelled) return false;
    wait_list::erase(*op);
    // cancel_all() may have come while the wait was ending otherwise.
    switch (is_cancelled && outcome != wait_outcome::none ? wait_outcome::cancelled : outcome) {
      case wait_outcome::expired:
      case wait_outcome::exhausted: lock.file_due(*op); break;
      case wait_outcome::rejected: lock.unfinished().put_ended(*op, wait_state::rejected); break;
      case wait_outcome::cancelled: lock.unfinished().put_ended(*op, wait_state::cancelled); break;
      default: shard::release(*op); break;  // the context is gone
    }
  }
  return true;
}

/// Stops guarding some operations. Returns true if there may be more.
bool operation_guard::release_some() noexcept
{
  const locked lock(shard_);
  for (int i = 0; i < shard::step; ++i) {
    wait_op* const op = guarded_.pop_front();
    if (!op) return false;
    shard::release(*op);
  }
  return true;
}

}  // namespace asio_wheel::detail
