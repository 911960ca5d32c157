// How time passes for a script.
#include "model/service_run.hpp"

#include <algorithm>
#include <utility>

namespace model {

void service_run::advance(duration d)
{
  const time_point before = wheel_.now();
  const std::uint64_t expired = waits_->expired;
  tell("advance by {}", d.count());
  try {
    const std::size_t n = time_->advance(d);
    expect(!settled_ || n == waits_->expired - expired, "what advance() returned");
    const time_point end = d > 0ns ? std::min(add(before, d), time_point::max() - 1ns) : before;
    expect(wheel_.now() == end, "where advance() went");
    expect_settled();
  } catch (thrown_by_script) {
    recover();
  }
}

void service_run::advance_to_next()
{
  settle();
  const time_point before = wheel_.now();
  const std::uint64_t expired = waits_->expired;
  const bool unseen_before = some_expire_unseen();
  tell("advance to next");
  try {
    const bool found = time_->advance_to_next();
    const bool unseen = unseen_before || some_expire_unseen();
    expect(unseen || found == (waits_->expired != expired), "what advance_to_next() returned");
    expect(
      unseen || (found ? wheel_.now() > before : wheel_.now() == before || some_are_beyond_time()),
      "where advance_to_next() went");
    expect_settled();
  } catch (thrown_by_script) {
    recover();
  }
}

/// A handler has thrown out of an advance, with others still due. Every other time that ends the
/// virtual time.
void service_run::recover()
{
  if (recovered_++ % 2 == 0)
    leave_time();
  else
    settle();
}

/// Whether there are waits whose tick would begin after the last time point. No advance meets them.
bool service_run::some_are_beyond_time() const
{
  const auto beyond = [](const wait& w) {
    return w.tick == time_line::never && w.deadline != time_point::max();
  };
  return !waits_->those(beyond).empty();
}

/// Whether there are waits that an advance meets and does not count, or not yet.
bool service_run::some_expire_unseen() const
{
  return !waits_->those([](const wait& w) { return w.foreign || w.watchdog >= 0; }).empty();
}

void service_run::run_one_handler()
{
  tell("run one handler");
  settled_ = false;
  if (context_->stopped()) context_->restart();
  try {
    context_->poll_one();
  } catch (thrown_by_script) {
  }
}

void service_run::run_one_handler_elsewhere()
{
  tell("run one handler of the other context");
  settled_ = false;
  if (other_context_->stopped()) other_context_->restart();
  try {
    other_context_->poll_one();
  } catch (thrown_by_script) {
  }
}

/// Ends virtual time, so that the clock goes back to the present, whatever is under way.
void service_run::leave_time()
{
  time_.reset();
  settled_ = false;
  waits_->clock_went_back(wheel_.now());
  tell("leave virtual time, to tick {}", waits_->line().floor(wheel_.now()));
}

void service_run::perform_at_present(operands& o)
{
  switch (o.take(2)) {
    case 0: return come_back(first_tick_);
    case 1: return come_back(first_tick_ + o.magnitude() % (1 << 20));
    case 2: return settle();
    default: break;
  }
  tell("{} time at the present", time_ ? "start" : "stop");
  if (time_)
    time_.reset();
  else
    start_time();
}

/// Returns to the script's own time.
void service_run::come_back(std::uint64_t tick)
{
  tell("come back to tick {}", tick);
  if (!time_) start_time();
  settle();
  waits_->clock_came_back();
  const time_point there = waits_->line().begin_of(tick);
  while (wheel_.now() < there && fault_.empty()) {
    try {
      time_->advance(there - wheel_.now());
    } catch (thrown_by_script) {
    }
  }
  settle();
}

/// Calls all handlers that are ready, while the clock stands still, or nearly so.
void service_run::settle()
{
  while (fault_.empty()) {
    try {
      if (context_->stopped()) context_->restart();
      if (time_)
        time_->advance(0ns);
      else
        context_->poll();
      return expect_settled();
    } catch (thrown_by_script) {
    }
  }
}

/// The same for both contexts.
void service_run::settle_everywhere()
{
  tell("settle everywhere");
  for (bool again = true; std::exchange(again, false) && fault_.empty();) {
    settle();
    if (other_context_->stopped()) other_context_->restart();
    try {
      again = other_context_->poll() != 0;
    } catch (thrown_by_script) {
      again = true;
    }
  }
  waits_->now_is(wheel_.now());
  report(waits_->overlooked(true));
  report(waits_->next_is(wheel_.next_expiry()));
  expect_operations_delivered(true);
}

void service_run::expect_settled()
{
  settled_ = true;
  waits_->now_is(wheel_.now());
  report(waits_->overlooked(false));
  expect_operations_delivered(false);
  expect(posted_ == 0, "a posted function was not called");
}

}  // namespace model
