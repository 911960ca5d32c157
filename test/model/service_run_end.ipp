// What must be true when a script or a context has ended.
#include <utility>

#include "model/service_run.hpp"

namespace model {

/// Destroys it with the handlers on their way to it. Does nothing if others are still to go there.
void service_run::destroy_other_context(operands& o)
{
  settle();
  const auto in_flight = [&](const wait& w) {
    return w.how != fate::pending || w.tick <= waits_->line().floor(wheel_.now());
  };
  const auto of_operation = [&](const wait& w) {
    for (const auto& op : operations_) {
      if (op->deadline.get() == &w) return true;
    }
    return false;
  };
  const auto keeps_it = [&](const wait& w) {
    return w.foreign && !in_flight(w) && (w.was_due || !of_operation(w));
  };
  if (!waits_->those(keeps_it).empty()) return;
  tell("destroy the other context");
  const auto end_its_operations = [&] {
    for (const auto& op : operations_) {
      if (op->foreign) end_operation(*op, reaction::drop, false);
    }
  };
  if (o.take(1) == 0) end_its_operations();
  const auto gone = waits_->those([&](const wait& w) { return w.foreign && in_flight(w); });
  for (const auto& op : operations_) {
    for (const wait* w : gone) {
      if (op->deadline.get() == w) op->deadline = nullptr;
    }
    if (op->foreign && op->at == limited_run::stage::ended) op->at = limited_run::stage::over;
  }
  waits_->destroyed(gone);
  call(false, [&] { other_context_.reset(); });
  other_context_.emplace();
  end_its_operations();
}

void service_run::run_to_end()
{
  if (at_present()) come_back(first_tick_);
  for (bool thrown = true; std::exchange(thrown, false);) {
    try {
      time_->advance(duration::max());
    } catch (thrown_by_script) {
      thrown = true;
    }
  }
  expect_settled();
  settle_everywhere();
  expect_work();
  operands none(0);
  while (!waits_->live().empty() && fault_.empty()) {  // handlers start more waits
    cancel_all(none);
    settle_everywhere();
  }
  expect_work();
  end_operations();
  expect_stats();
}

void service_run::expect_stats()
{
  const wheel_stats stats = wheel_.stats();
  expect(stats.started == waits_->accepted + 1, "stats().started");  // one in the constructor
  expect(stats.expired == waits_->expired + 1, "stats().expired");
  expect(stats.cancelled == waits_->cancels, "stats().cancelled");
  expect(waits_->live().size() > 0 || waits_->cancels == waits_->aborted,
         "as many waits were aborted as cancels said");
  expect(stats.met == waits_->met, "stats().met");
  expect(stats.rejected == waits_->rejected, "stats().rejected");
}

/// Expects that run() would return if, and only if, nothing is pending.
void service_run::expect_work()
{
  context_->restart();
  context_->poll();
  expect(context_->stopped() == waits_->live().empty(), "the context's count of work");
}

void service_run::destroy()
{
  over_ = true;
  calling_ = true;  // so that any handler is called inline
  if (settings_.timers_go_first) destroy_timers();
  if (settings_.clock_goes_first) time_.reset();
  if (settings_.operations_outlive == 0) end_operations_at_end();
  context_.reset();
  if (settings_.operations_outlive == 1) end_operations_at_end();
  other_context_.reset();
  end_operations_at_end();
  time_.reset();
  destroy_timers();
  for (const auto& w : waits_->live()) expect(w.use_count() == 1, "a handler outlived the context");
}

/// Expects that operations call their handlers, whatever has become of the wheel.
void service_run::end_operations_at_end()
{
  for (const auto& op : operations_) {
    if (op->at != limited_run::stage::running) continue;
    const auto how = static_cast<reaction>(1 + op->number % 3);
    calling_ = false;
    end_operation(*op, how, false);
    calling_ = true;
    expect(op->at == limited_run::stage::over || op->may_lag,
           "an operation's handler was not called at the end");
  }
}

void service_run::destroy_timers()
{
  for (auto& t : timers_) t.object.reset();
  for (auto& d : watchdogs_) d.object.reset();
}

}  // namespace model
