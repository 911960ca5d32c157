// L2 service: filing and ending the wait that stands for guarded operations.
#include <asio_wheel/detail/service/operation_guard.hpp>

#include <asio_wheel/detail/service/wait_handler.hpp>

#include <algorithm>
#include <mutex>

namespace asio_wheel::detail {

operation_guard::operation_guard(wheel_core& c, const moving_deadline* source)
  : unlinked(&operation_guard::do_end, false),
    core_(&c),
    home_(c.local()),
    source_(source)
{
  set_deadline(*this);
}

time_point operation_guard::deadline() const noexcept
{
  // The wait is to end then, and not to be filed again.
  if (closed_ || (guarded_.empty() && !source_)) return time_point::min();
  if (source_) return source_->guarded_until();
  time_point earliest = time_point::max();
  guarded_.for_each(
    [&](wait_op& op) { earliest = std::min(earliest, static_cast<guarded_wait&>(op).by_.until); });
  return earliest;
}

void operation_guard::set_filed_for(time_point t) noexcept
{
  filed_for_.store(t, std::memory_order_relaxed);
}

/// Notes for when its wait is about to be filed, and returns the tick.
tick operation_guard::look_ahead() noexcept
{
  const time_point until = deadline();
  set_filed_for(until);
  return core_->clock().tick_for(until);
}

wait_outcome operation_guard::expire(time_point) noexcept
{
  return wait_outcome::expired;
}

/// Files its wait. Returns a tick to wake up at, or no_tick.
tick operation_guard::file(section& s) noexcept
{
  const tick when = look_ahead();
  try {
    const bool filed = core_->file(s, *this, when);
    set_filed();
    return filed ? when : no_tick;
  } catch (...) {
    // The operations are under way, and without a deadline they might never end.
    while (wait_op* const op = guarded_.pop_front()) s.reject(*op);
    return no_tick;
  }
}

/// Its wait was filed.
void operation_guard::set_filed() noexcept
{
  // One that was refused ends as such, and the operations with it.
  intrusive_ptr_add_ref(this);
  filed_ = true;
}

tick operation_guard::add(section& s, guarded_wait& deadline) noexcept
{
  if (add_next(deadline)) return no_tick;
  // Without a context or an owner, the operation goes on unguarded.
  if (home_.is_closed() || closed_) return no_tick;
  home_.guard(deadline, guarded_);
  if (filed_.load(std::memory_order_relaxed)) {
    const tick when = look_ahead();
    home_.settle();
    home_.hasten(*this, when);
    return when;
  }
  return file(s);
}

bool operation_guard::take_back(guarded_wait& deadline, tick& renewed) noexcept
{
  if (closed_) {
    if (home_.drop_deadline(deadline)) core_->count_ended(1);
    return true;
  }
  if (home_.is_closed() || !home_.is_to_expire(deadline)) return false;
  const wheel_clock& clock = core_->clock();
  const time_point until = source_ ? this->deadline() : deadline.by_.until;
  if (until <= clock.now()) return false;
  const tick when = clock.tick_ceil(until);
  if (filed_.load(std::memory_order_relaxed)) {
    home_.hasten(*this, when);
    if (until < filed_for_.load(std::memory_order_relaxed)) set_filed_for(until);
  } else {
    try {
      home_.file(*this, when, home_);
    } catch (...) {
      return false;  // then it expires after all
    }
    core_->count_started(1);
    set_filed();
    set_filed_for(until);
  }
  renewed = when;
  if (home_.drop_deadline(deadline)) core_->count_ended(1);
  home_.guard(deadline, guarded_);
  return true;
}

tick operation_guard::hasten() noexcept
{
  const section s(home_);
  if (!filed_.load(std::memory_order_relaxed)) return no_tick;
  home_.settle();
  const tick when = look_ahead();
  home_.hasten(*this, when);
  return when;
}

/// Takes the wait out of the wheel, unless it has begun. Requires the lock. Whether the wheel's
/// count of this is the caller's now.
bool operation_guard::take_out() noexcept
{
  if (!filed_.load(std::memory_order_relaxed) || !shard::is_reachable(*this)) return false;
  if (home_.drop_deadline(*this)) core_->count_ended(1);
  filed_ = false;
  return true;
}

void operation_guard::take_out_if_at_rest() noexcept
{
  intrusive_ptr<operation_guard> of_wheel;
  {
    const std::lock_guard lock(home_);
    if (!guarded_.empty() || !take_out()) return;
    of_wheel = {this, false};
  }
  if (home_.has_unneeded()) wheel_core::tell_driver(home_);
}

void operation_guard::move_to(const moving_deadline& source) noexcept
{
  const std::lock_guard lock(home_);
  source_ = &source;
}

void operation_guard::close() noexcept
{
  intrusive_ptr<operation_guard> of_wheel;
  {
    const std::lock_guard lock(home_);
    closed_ = true;
    while (wait_op* const op = guarded_.pop_front()) shard::let_go(*op);
    if (take_out()) of_wheel = {this, false};
  }
  if (home_.has_unneeded()) wheel_core::tell_driver(home_);
}

void operation_guard::do_end(wait_op& base, home& at, wait_outcome outcome, time_point)
{
  auto& self = static_cast<operation_guard&>(base);
  if (outcome == wait_outcome::described) {
    // The first operation speaks for all.
    if (wait_op* const op = self.guarded_.front()) return op->end(at, outcome);
    return describe_handler<operation_guard>(at);
  }
  const intrusive_ptr<operation_guard> of_wheel(&self, false);
  self.core_->wake_at(self.end_guarded(outcome));
}

/// Its wait has ended: lets the operations know. Returns a tick to wake up at, or no_tick.
tick operation_guard::end_guarded(wait_outcome outcome) noexcept
{
  section s(home_);
  filed_ = false;
  wait_list since;
  while (wait_op* const op = guarded_.pop_front()) {
    switch (outcome) {
      case wait_outcome::expired: s.file_due(*op); break;
      case wait_outcome::rejected: s.refuse(*op); break;
      case wait_outcome::cancelled:  // by cancel_all(): what was guarded since goes on
        if (home_.is_all_cancelled(*op))
          s.abort(*op);
        else
          since.push_back(*op);
        break;
      default: shard::let_go(*op); break;  // the context is gone
    }
  }
  if (since.empty()) return no_tick;
  guarded_.splice_back(since);
  return file(s);
}

}  // namespace asio_wheel::detail
