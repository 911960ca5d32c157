// What a script does to an interval.
#include <algorithm>
#include <array>

#include "model/tasks_run.hpp"

namespace model {

void tasks_run::make_interval(operands& o)
{
  period_ = take_period(o);
  missed_ = std::array{missed_tick::burst, missed_tick::delay, missed_tick::skip,
                       missed_tick::skip}[o.take(2)];
  next_ = wheel.now();
  interval_.emplace(wheel, period_, missed_);
}

void tasks_run::start_tick(operands& o)
{
  if (has_enough_operations()) return;
  const auto op = begin(nullptr, o);
  op->began = taken_;
  tell("next tick: operation {}", op->number);
  interval_->async_tick(recorder{this, op, life_});
}

void tasks_run::happened(const operation& op, time_point tick)
{
  tell("the tick of {}", (tick - start).count());
  expect(!op.is_cancelled, "a tick that had been cancelled");
  expect(!op.is_refused, "a tick whose wait had been refused");
  if (op.began < shared_until_ && tick == last_tick_) return;
  expect(tick == next_, "which tick it was");
  expect_due(next_, set_, op.started, "a tick");
  last_tick_ = next_;
  shared_until_ = ++taken_;
  set_ = wheel.now();
  const duration late = wheel.now() - next_;
  const bool missed = late >= period_ || late > std::max<duration>(5ms, 2 * options().tick);
  if (missed_ == missed_tick::skip)
    next_ = first_ahead(next_, period_);
  else
    next_ = (missed && missed_ == missed_tick::delay ? wheel.now() : next_) + period_;
}

void tasks_run::reset_interval()
{
  tell("reset the interval");
  interval_->reset();
  next_ = wheel.now() + period_;
  set_ = wheel.now();
  shared_until_ = 0;
}

void tasks_run::cancel_interval()
{
  tell("cancel the interval");
  interval_->cancel();
  for (const auto& op : operations_) op->is_cancelled |= !op->of;
}

}  // namespace model
