// How time passes for a script, and what must be true when it has come to an end.
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
    settle();
  }
}

void service_run::advance_to_next()
{
  settle();
  const time_point before = wheel_.now();
  const std::uint64_t expired = waits_->expired;
  tell("advance to next");
  try {
    const bool found = time_->advance_to_next();
    expect(found == (waits_->expired != expired), "what advance_to_next() returned");
    expect(found ? wheel_.now() > before : wheel_.now() == before || some_are_beyond_time(),
           "where advance_to_next() went");
    expect_settled();
  } catch (thrown_by_script) {
    settle();
  }
}

/// Waits whose tick would begin after the last time point. The clock looks for them in vain.
bool service_run::some_are_beyond_time() const
{
  const auto beyond = [](const wait& w) {
    return w.tick == time_line::never && w.deadline != time_point::max();
  };
  return !waits_->those(beyond).empty();
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

/// Lets time run, which takes it back to the present, and stops it again.
void service_run::set_clock_anew()
{
  settle();
  time_.reset();
  time_.emplace(wheel_);
  waits_->now_is(wheel_.now());
  waits_->clock_was_set();
  tell("set the clock anew, to tick {}", waits_->line().floor(wheel_.now()));
}

/// Calls all handlers that are ready, the clock standing still.
void service_run::settle()
{
  for (;;) {
    try {
      time_->advance(0ns);
      return expect_settled();
    } catch (thrown_by_script) {
    }
  }
}

void service_run::expect_settled()
{
  settled_ = true;
  waits_->now_is(wheel_.now());
  report(waits_->overlooked());
  expect(posted_ == 0, "a posted function was not called");
}

void service_run::run_to_end()
{
  for (bool thrown = true; std::exchange(thrown, false);) {
    try {
      time_->advance(duration::max());
    } catch (thrown_by_script) {
      thrown = true;
    }
  }
  expect_settled();
  expect_work();
  operands none(0);
  while (!waits_->live().empty() && fault_.empty()) {  // handlers start others
    cancel_all(none);
    settle();
  }
  expect_work();

  const wheel_stats stats = wheel_.stats();
  expect(stats.started == waits_->accepted + 1, "stats().started");  // that of the constructor
  expect(stats.expired == waits_->expired + 1, "stats().expired");
  expect(stats.cancelled == waits_->aborted, "stats().cancelled");
  expect(stats.cancelled == waits_->cancels, "as many waits were aborted as cancels said");
  expect(stats.rejected == waits_->rejected, "stats().rejected");
}

/// run() would return if, and only if, nothing is pending.
void service_run::expect_work()
{
  context_->restart();
  context_->poll();
  expect(context_->stopped() == waits_->live().empty(), "the context's count of work");
}

void service_run::destroy()
{
  calling_ = true;  // so that any handler is called inline
  if (settings_.timers_go_first) destroy_timers();
  if (settings_.clock_goes_first) time_.reset();
  context_.reset();
  time_.reset();
  destroy_timers();
  for (const auto& w : waits_->live()) expect(w.use_count() == 1, "a handler outlived the context");
}

void service_run::destroy_timers()
{
  for (auto& t : timers_) t.object.reset();
}

}  // namespace model
