// L2 service: the lock's side of an operation with a deadline.
#include <asio_wheel/detail/service/deadline_wait.hpp>

#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace asio_wheel::detail {

void fail_without_wheel()
{
  throw std::logic_error(
    "a deadline on an operation without an executor, for a handler without one: give the wheel, as "
    "in cancel_after(wheel, 5s), or put bind_executor and its kin inside: "
    "cancel_after(5s, bind_executor(ex, token))");
}

deadline_filing::deadline_filing(wheel_core& c, duration delay) noexcept
  : at(c.shards.local()),
    when(c.clock.tick_for(delay))
{}

deadline_filing::deadline_filing(wheel_core& c, time_point deadline) noexcept
  : at(c.shards.local()),
    when(c.clock.tick_for(deadline))
{}

/// For an operation that has ended while it was initiated. Whether the state is now the caller's.
bool deadline_wait::end_first() noexcept
{
  if (!let_go()) return false;
  shard::cut_link(*this);
  return true;
}

/// start(), with the lock taken.
bool deadline_wait::start_first() noexcept
{
  tick filed = no_tick;
  intrusive_ptr<wheel_core> to_wake;
  {
    section s(*home_, std::adopt_lock);
    if (has_ended()) return !end_first();
    static_cast<void>(let_go());
    filed = guard_->add(s, *this);
    if (filed != no_tick) to_wake = &core();
  }
  if (to_wake) to_wake->wake_at(filed);
  return true;
}

bool deadline_wait::start(tick when) noexcept
{
  home& h = *home_;
  wheel_core& c = h.core;
  bool filed = false;
  {
    section s(h);
    if (has_ended()) return !end_first();
    if (when == never || h.is_closed()) {
      c.keep_for(*this);
    } else {
      try {
        filed = c.file(s, *this, when);
      } catch (...) {
        // The operation is under way, and without a deadline it might never end.
        s.unfinished().reject(*this);
      }
    }
    // Last: this writes a part of the word that filing reads as a whole, and would wait for.
    static_cast<void>(let_go());
  }
  if (filed) c.wake_at(when);
  return true;
}

deadline_wait::departure deadline_wait::leave(operation_end how) noexcept
{
  home& h = *home_;
  h.lock();
  bool is_last = true;
  if (state_ == wait_state::filed && holders_ == 0) [[likely]] {
    if (h.drop_filed(*this)) h.core.count_ended(1);
    shard::cut_link(*this);
  } else {
    is_last = leave_unfiled(how);
  }
  home* to_tell_of = nullptr;
  if (h.has_unneeded()) {
    // Outside of the wheel's context, that may go as soon as the lock is released. A context that
    // is gone can not be asked.
    if (h.is_closed() || !h.core.native.running_in_this_thread()) {
      tell_from_outside(h);
      return {is_last};
    }
    to_tell_of = &h;
  }
  h.unlock();
  return {is_last, to_tell_of};
}

/// leave() of one that is not in the wheel, or has a holder. Requires the lock, which may be
/// released meanwhile. Whether the state is the caller's.
bool deadline_wait::leave_unfiled(operation_end how) noexcept
{
  home& h = *home_;
  while (sending_) {
    // Another thread is about to post to the handler's executor, which may go with the operation.
    h.unlock();
    std::this_thread::yield();
    h.lock();
  }
  if (h.drop_deadline(*this)) h.core.count_ended(1);
  if (flight_) take_off(*flight_);
  if (guard_) guard_->set_ended();
  if (holders_ == 0) {
    shard::cut_link(*this);
    return true;
  }
  h.core.keep_for(*this);
  end_ = how;
  return false;
}

/// Tells the driver in a thread that the context does not run. Releases the lock.
void deadline_wait::tell_from_outside(home& h) noexcept
{
  const intrusive_ptr<wheel_core> kept(&h.core);
  h.unlock();
  wheel_core::tell_driver(h);
}

bool deadline_wait::leave_and_tell(operation_end how) noexcept
{
  const departure d = leave(how);
  if (d.to_tell_of) wheel_core::tell_driver(*d.to_tell_of);
  return d.is_last;
}

deadline_wait* deadline_wait::hold(slot_link& link, asio::cancellation_type_t type) noexcept
{
  home* const h = link.at();
  if (!h || type == asio::cancellation_type::none) return nullptr;
  const std::lock_guard lock(*h);
  auto* const op = static_cast<deadline_wait*>(link.wait());
  if (!op || op->has_ended()) return nullptr;
  ++op->holders_;
  return op;
}

bool deadline_wait::release() noexcept
{
  const std::lock_guard lock(*home_);
  const bool last = let_go() && has_ended();
  if (last) shard::cut_link(*this);
  return last;
}

bool deadline_wait::begin_firing(wait_outcome outcome) noexcept
{
  const std::lock_guard lock(*home_);
  core().keep_for(*this);
  if (has_ended()) return false;
  if (outcome == wait_outcome::rejected)
    verdict_ = outcome;
  else if (outcome == wait_outcome::expired && report_ == deadline_report::timed_out)
    verdict_ = wait_outcome::timed_out;
  return true;
}

wait_outcome deadline_wait::begin_here(time_point taken_up) noexcept
{
  tick renewed = no_tick;
  wait_outcome outcome{};
  intrusive_ptr<wheel_core> to_wake;
  {
    const std::lock_guard lock(*home_);
    sending_ = false;
    outcome = begin(taken_up, renewed);
    if (renewed != no_tick) to_wake = &core();
  }
  if (to_wake) to_wake->wake_at(renewed);
  return outcome;
}

/// Requires the lock.
wait_outcome deadline_wait::begin(time_point taken_up, tick& renewed) noexcept
{
  if (guard_ && guard_->take_back(*this, renewed)) return wait_outcome::undecided;
  const wait_outcome outcome = home_->begin(*this, taken_up, renewed);
  if (outcome == wait_outcome::expired) core().count_ended(1);
  return outcome;
}

void deadline_wait::set_sent() noexcept
{
  const std::lock_guard lock(*home_);
  sending_ = false;
}

/// For one that could not be sent, unless its flight has survived that, say in a strand.
void deadline_wait::take_back() noexcept
{
  section s(*home_);
  sending_ = false;
  if (!flight_) s.unfinished().take_back(*this);
}

void deadline_wait::take_off(flight& f) noexcept
{
  f.passenger_ = nullptr;
  flight_ = nullptr;
}

deadline_wait::flight::flight(deadline_wait& passenger, time_point taken_up) noexcept
  : home_(passenger.home_),
    core_(&home_->core),
    taken_up_(taken_up),
    passenger_(&passenger)
{
  const std::lock_guard lock(*home_);
  core_->keep_for(passenger);
  passenger.flight_ = this;
}

deadline_wait::flight::~flight()
{
  const std::lock_guard lock(*home_);
  if (!passenger_) return;
  passenger_->flight_ = nullptr;
  // Dropped by the executor. If that was before it was posted, the deadline is taken back.
  if (!passenger_->sending_ && home_->drop(*passenger_)) core_->count_ended(1);
}

deadline_wait* deadline_wait::flight::arrive(wait_outcome& outcome) noexcept
{
  tick renewed = no_tick;
  deadline_wait* op = nullptr;
  {
    std::unique_lock lock(*home_);
    while (passenger_ && passenger_->guard_ && passenger_->sending_) {
      // Its guard may take it back: then the operation could end before its sender is done with it.
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    op = std::exchange(passenger_, nullptr);
    if (!op) return nullptr;
    op->flight_ = nullptr;
    outcome = op->begin(taken_up_, renewed);
  }
  if (renewed != no_tick) core_->wake_at(renewed);
  return outcome != wait_outcome::undecided ? op : nullptr;
}

}  // namespace asio_wheel::detail
