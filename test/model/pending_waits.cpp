// The model that a wheel is compared with.
#include "model/pending_waits.hpp"

#include <asio_wheel/wheel_errc.hpp>

#include <algorithm>

namespace model {

using namespace asio_wheel;

std::uint64_t time_line::floor(time_point t) const
{
  return t > base_ ? static_cast<std::uint64_t>((t - base_) / tick_) : 0;
}

std::uint64_t time_line::tick_for(time_point deadline, time_point now) const
{
  if (deadline == time_point::max()) return never;
  const std::uint64_t down = floor(deadline);
  const bool exact = deadline <= base_ || (deadline - base_) % tick_ == duration::zero();
  const std::uint64_t up = exact ? down : down + 1;
  if (deadline <= now) return floor(now);
  return up > floor(time_point::max()) ? never : up;
}

time_point time_line::begin_of(std::uint64_t tick) const
{
  return tick == never ? time_point::max() : base_ + static_cast<duration::rep>(tick) * tick_;
}

duration time_line::ticks(std::uint64_t n) const
{
  const auto most = static_cast<std::uint64_t>(duration::max() / tick_);
  return n > most ? duration::max() : static_cast<duration::rep>(n) * tick_;
}

void pending_waits::clock_went_back(time_point now)
{
  for (const auto& w : live_) {
    w->was_due |= w->how == fate::pending && has_come(*w);
    w->may_be_late |= w->watchdog >= 0;
  }
  now_ = now;
  at_present_ = true;
  for (const auto& w : live_) {
    // One whose deadline had passed in the midst of a tick may be filed again, for the next.
    if (w->watchdog >= 0) w->tick = std::max(w->tick, line_.tick_for(w->deadline, now_));
    set_due(*w);
  }
}

void pending_waits::clock_came_back()
{
  at_present_ = false;
  for (const auto& w : live_) w->was_due &= w->foreign;
}

void pending_waits::set_due(wait& w) const
{
  w.latest = std::max(w.tick, line_.floor(now_));
  w.due = has_come(w) ? now_ : line_.begin_of(w.tick);
}

std::shared_ptr<wait> pending_waits::start(wait w, std::size_t pending)
{
  w.number = started_++;
  set_due(w);
  if (limit_ == 0 || pending < limit_) {
    ++accepted;
  } else {
    w.how = fate::rejected;
    ++rejected;
  }
  return live_.emplace_back(std::make_shared<wait>(w));
}

void pending_waits::has_started(wait& w, time_point now) const
{
  w.latest = std::max(w.latest, line_.floor(now));
}

void pending_waits::put_off(const list& waits, time_point deadline)
{
  for (wait* w : waits) {
    const std::uint64_t tick = line_.tick_for(deadline, now_);
    w->tick = w->may_be_late ? std::max(w->tick, tick) : tick;
    w->deadline = deadline;
    set_due(*w);
  }
}

void pending_waits::met_by(wait& deadline)
{
  if (deadline.how == fate::pending) ++met;
  if (deadline.how == fate::cancelled) ++aborted;
  remove(deadline);
}

void pending_waits::destroyed(const list& waits)
{
  for (wait* w : waits) {
    if (w->how == fate::cancelled) ++aborted;
    remove(*w);
  }
}

void pending_waits::remove(const wait& w)
{
  std::erase_if(live_, [&](const auto& each) { return each.get() == &w; });
}

pending_waits::list pending_waits::those(const std::function<bool(const wait&)>& of_interest) const
{
  list waits;
  for (const auto& w : live_) {
    if (of_interest(*w)) waits.push_back(w.get());
  }
  return waits;
}

std::string pending_waits::cancelled(const list& waits, std::size_t n)
{
  std::size_t expected = 0;
  for (wait* w : waits) {
    if (w->how != fate::pending) continue;
    w->how = fate::cancelled;
    ++expected;
  }
  cancels += n;
  return n == expected ? std::string{}
                       : fmt::format("{} were cancelled instead of {}", n, expected);
}

std::string pending_waits::cancelled_one(const list& waits, std::size_t n)
{
  const auto oldest =
    std::find_if(waits.begin(), waits.end(), [](const wait* w) { return w->how == fate::pending; });
  return cancelled(oldest == waits.end() ? list{} : list{*oldest}, n);
}

/// Whether `a` must expire before `b`: its tick comes first, or one thread started it first.
bool pending_waits::precedes(const wait& a, const wait& b)
{
  for (const wait* w : {&a, &b}) {
    if (w->foreign || w->was_due || w->may_be_late) return false;
  }
  if (a.latest < b.tick) return true;
  if (a.watchdog >= 0 || b.watchdog >= 0) return false;  // filed again and again
  return a.elsewhere == b.elsewhere && a.number < b.number && a.tick <= b.tick &&
         a.latest <= b.latest;
}

/// Whether it may expire now.
bool pending_waits::is_on_time(const wait& w) const
{
  if (at_present_) return w.was_due || has_come(w);
  if (w.was_due) return true;  // the other context may run its handlers late
  if (w.foreign || w.may_be_late) return now_ >= w.deadline;
  return now_ == w.due;
}

std::string pending_waits::succeeded(const wait& w) const
{
  if (w.how == fate::cancelled || w.how == fate::rejected)
    return fmt::format("wait {} expired, though it had been cancelled or rejected", w.number);
  if (now_ < w.deadline && !w.was_due) return fmt::format("wait {} is early", w.number);
  if (!is_on_time(w))
    return fmt::format("wait {} expired in tick {} instead of {}", w.number, line_.floor(now_),
                       line_.floor(w.due));
  for (const auto& other : live_) {
    if (other->how == fate::pending && precedes(*other, w))
      return fmt::format("wait {} overtook wait {}", w.number, other->number);
  }
  return {};
}

std::string pending_waits::completed(wait& w, error_code ec)
{
  if (std::exchange(w.completed, true)) return fmt::format("wait {} completed twice", w.number);
  remove(w);
  if (!ec) {
    ++expired;
    return succeeded(w);
  }
  const bool was_aborted = ec == asio::error::operation_aborted;
  if (was_aborted) ++aborted;
  const bool fits = was_aborted ? w.how == fate::cancelled
                                : w.how == fate::rejected && ec == wheel_errc::too_many_pending;
  return fits ? std::string{} : fmt::format("wait {} failed with {}", w.number, ec.message());
}

std::string pending_waits::are_pending(std::size_t n) const
{
  const std::size_t expected = those([](const wait& w) { return w.how == fate::pending; }).size();
  return n == expected ? std::string{} : fmt::format("pending() is {} instead of {}", n, expected);
}

std::string pending_waits::next_is(std::optional<time_point> next) const
{
  if (at_present_) return {};
  std::uint64_t first = time_line::never;
  for (const auto& w : live_) {
    // The wheel looks at a watchdog when it has filed it for, whatever its deadline is by now.
    if (w->watchdog >= 0) return {};
    first = std::min(first, w->tick);
  }
  const std::uint64_t said = next ? line_.floor(*next) : time_line::never;
  return said == first ? std::string{}
                       : fmt::format("next_expiry() is {} instead of {}", said, first);
}

std::string pending_waits::overlooked(bool everywhere) const
{
  for (const auto& w : live_) {
    if (w->foreign && !everywhere) continue;
    if (w->how != fate::pending || has_come(*w))
      return fmt::format("wait {} was not completed", w->number);
  }
  return {};
}

}  // namespace model
