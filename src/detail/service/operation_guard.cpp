// L2 service: filing and ending the wait that stands for guarded operations.
#include <asio_wheel/detail/service/operation_guard.hpp>

#include <mutex>

namespace asio_wheel::detail {

operation_guard::operation_guard(wheel_core& c, const moving_deadline& source)
  : unlinked(&operation_guard::do_end, false),
    core_(&c),
    home_(c.local()),
    source_(&source)
{
  set_deadline(*this);
}

time_point operation_guard::deadline() const noexcept
{
  if (!source_) return time_point::min();
  time_point t;
  // Whoever brings it forward in between looks at the answer, or is heard here.
  do answer_ = t = source_->guarded_until();
  while (source_->guarded_until() < t);
  return t;
}

wait_outcome operation_guard::expire(time_point) noexcept
{
  return wait_outcome::expired;
}

bool operation_guard::is_over() const noexcept
{
  const std::lock_guard lock(home_);
  return deadline() <= core_->clock().now();
}

tick operation_guard::add(section& s, wait_op& deadline) noexcept
{
  if (add_next(deadline)) return no_tick;
  // Without a context or a deadline, the operation goes on unguarded.
  if (home_.is_closed() || !source_) return no_tick;
  const tick when = core_->clock().tick_for(this->deadline());
  try {
    const bool filed = core_->file(s, *this, when);
    // One that was refused ends as such, and the operations with it.
    intrusive_ptr_add_ref(this);
    filed_ = true;
    shard::guard(deadline, guarded_);
    return filed ? when : no_tick;
  } catch (...) {
    // The operation is under way, and without a deadline it might never end.
    s.reject(deadline);
    return no_tick;
  }
}

bool operation_guard::take_back(wait_op& deadline, tick& renewed) noexcept
{
  if (!source_) {
    if (home_.drop_deadline(deadline)) core_->count_ended(1);
    return true;
  }
  if (home_.is_closed() || !home_.is_to_expire(deadline)) return false;
  const wheel_clock& clock = core_->clock();
  const time_point until = this->deadline();
  if (until <= clock.now()) return false;
  if (!filed_.load(std::memory_order_relaxed)) {
    const tick when = clock.tick_ceil(until);
    try {
      home_.file(*this, when, home_);
    } catch (...) {
      return false;  // then it expires after all
    }
    core_->count_started(1);
    intrusive_ptr_add_ref(this);
    filed_ = true;
    renewed = when;
  }
  if (home_.drop_deadline(deadline)) core_->count_ended(1);
  shard::guard(deadline, guarded_);
  return true;
}

void operation_guard::hasten() noexcept
{
  tick when;
  {
    const section s(home_);
    if (!filed_.load(std::memory_order_relaxed)) return;
    home_.settle();
    when = core_->clock().tick_for(deadline());
    home_.hasten(*this, when);
  }
  core_->wake_at(when);
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
    source_ = nullptr;
    while (wait_op* const op = guarded_.pop_front()) shard::let_go(*op);
    if (take_out()) of_wheel = {this, false};
  }
  if (home_.has_unneeded()) wheel_core::tell_driver(home_);
}

void operation_guard::do_end(wait_op& base, home&, wait_outcome outcome, time_point)
{
  auto& self = static_cast<operation_guard&>(base);
  const intrusive_ptr<operation_guard> of_wheel(&self, false);
  section s(self.home_);
  self.filed_ = false;
  while (wait_op* const op = self.guarded_.pop_front()) {
    switch (outcome) {
      case wait_outcome::expired: s.file_due(*op); break;
      case wait_outcome::cancelled: s.abort(*op); break;
      case wait_outcome::rejected: s.reject(*op); break;
      default: shard::let_go(*op); break;  // the context is gone
    }
  }
}

}  // namespace asio_wheel::detail
