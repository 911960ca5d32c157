// L2 service: the lock's side of an operation with a deadline.
#include <asio_wheel/detail/service/deadline_wait.hpp>

#include <asio_wheel/wheel_errc.hpp>

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

tick deadline_wait::prepare(wheel_core& c, duration delay)
{
  const wheel_clock& clock = c.clock();
  const tick when = clock.tick_for(clock.deadline_after(delay), delay);
  if (when != never) c.prepare(when);
  return when;
}

tick deadline_wait::prepare(wheel_core& c, time_point deadline)
{
  const tick when = c.clock().tick_for(deadline);
  if (when != never) c.prepare(when);
  return when;
}

deadline_wait::deadline_wait(end_fn f, wheel_core& c, tick when, terms t, bool foreign) noexcept
  : linked(f, foreign, true),
    home_(&c.local()),
    terms_(t)
{
  holders_ = 1;  // the function that initiates the operation
  if (when == never) c.keep_for(*this);
}

deadline_wait::~deadline_wait()
{
  if (keeps_core_) intrusive_ptr_release(&core());
}

intrusive_ptr<wheel_core> deadline_wait::take_core() noexcept
{
  if (!keeps_core_) return {};
  keeps_core_ = false;
  return {&core(), false};
}

bool deadline_wait::start(tick when) noexcept
{
  if (when == never) return !release();
  wheel_core& c = core();
  {
    section s(*home_);
    if (ended_) {
      if (!let_go()) return true;
      shard::cut_link(*this);
      return false;
    }
    static_cast<void>(let_go());
    if (home_->is_closed()) {
      c.keep_for(*this);
      return true;
    }
    try {
      if (!c.file(s, *this, when)) return true;
    } catch (...) {
      // The operation is under way, and without a deadline it might never end.
      s.reject(*this);
      return true;
    }
  }
  c.confirm(when);
  return true;
}

bool deadline_wait::leave(bool for_good, driver_notice& later) noexcept
{
  home& h = *home_;
  bool alone = false;
  // Outside of the wheel's context, that may go as soon as the lock is released.
  intrusive_ptr<wheel_core> to_tell;
  {
    std::unique_lock lock(h);
    while (sending_) {
      // Another thread is about to post to the handler's executor, which may go with the operation.
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    if (h.drop_deadline(*this)) {
      core().count_ended(1);
      // A context that is gone can not be asked.
      const bool inside = !h.is_closed() && core().native().running_in_this_thread();
      if (inside)
        later.set(h);
      else if (h.has_unneeded())
        to_tell = &core();
    }
    if (flight_) take_off(*flight_);
    alone = holders_ == 0;
    if (alone) {
      shard::cut_link(*this);
    } else {
      core().keep_for(*this);
      ended_ = for_good;
    }
  }
  if (to_tell) wheel_core::tell_driver(h);
  return alone;
}

deadline_wait* deadline_wait::hold(slot_link& link, asio::cancellation_type_t type) noexcept
{
  home* const h = link.at();
  if (!h || type == asio::cancellation_type::none) return nullptr;
  const std::lock_guard lock(*h);
  auto* const op = static_cast<deadline_wait*>(link.wait());
  if (!op || op->ended_) return nullptr;
  ++op->holders_;
  return op;
}

bool deadline_wait::release() noexcept
{
  const std::lock_guard lock(*home_);
  const bool last = let_go() && ended_;
  if (last) shard::cut_link(*this);
  return last;
}

bool deadline_wait::begin_firing(wait_outcome outcome) noexcept
{
  const std::lock_guard lock(*home_);
  core().keep_for(*this);
  if (ended_) return false;
  if (outcome == wait_outcome::rejected)
    verdict_ = wheel_errc::too_many_pending;
  else if (outcome == wait_outcome::expired && terms_.report == deadline_report::timed_out)
    verdict_ = asio::error::timed_out;
  return true;
}

wait_outcome deadline_wait::begin_here(time_point taken_up) noexcept
{
  const std::lock_guard lock(*home_);
  sending_ = false;
  return begin(taken_up);
}

/// Requires the lock.
wait_outcome deadline_wait::begin(time_point taken_up) noexcept
{
  tick never_renewed = no_tick;
  const wait_outcome outcome = home_->begin(*this, taken_up, never_renewed);
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
  if (!flight_) s.take_back(*this);
}

void deadline_wait::take_off(flight& f) noexcept
{
  f.passenger_ = nullptr;
  flight_ = nullptr;
}

deadline_wait::flight::flight(deadline_wait& passenger, time_point taken_up) noexcept
  : home_(passenger.home_),
    core_(&home_->core()),
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
  const std::lock_guard lock(*home_);
  deadline_wait* const op = std::exchange(passenger_, nullptr);
  if (!op) return nullptr;
  op->flight_ = nullptr;
  outcome = op->begin(taken_up_);
  return op;
}

}  // namespace asio_wheel::detail
