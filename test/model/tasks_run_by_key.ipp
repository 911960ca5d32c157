// What a script does to tasks by key.
#include <algorithm>

#include "model/tasks_run.hpp"

namespace model {

void tasks_run::run_after(operands& o)
{
  const int key = take_key(o);
  const duration delay = take_delay(o);
  auto t = make_task(o, delay);
  const bool taken = scheduler_->run_after(key, delay, task_function{this, key, t, life_});
  tell("run {} after {}: task {}, {}", key, delay.count(), t->number, taken);
  scheduled(key, t, taken);
}

void tasks_run::run_every(operands& o)
{
  const int key = take_key(o);
  const duration period = std::max(take_delay(o), duration(1));
  auto t = make_task(o, period);
  t->period = period;
  t->times = 1 + o.take(3);
  if (t->times > many) t->times = many;
  const bool taken = scheduler_->run_every(key, period, task_function{this, key, t, life_},
                                           t->times == many ? forever : t->times);
  tell("run {} every {}, {} times: task {}, {}", key, period.count(), t->times, t->number, taken);
  scheduled(key, t, taken);
}

std::shared_ptr<tasks_run::task> tasks_run::make_task(operands& o, duration delay)
{
  auto t = std::make_shared<task>();
  t->number = ++numbers_;
  t->turn = wheel.now() + delay;
  t->set = wheel.now();
  t->does = o.take(24);
  t->is_refused = is_full();
  return t;
}

void tasks_run::scheduled(int key, const std::shared_ptr<task>& t, bool taken)
{
  std::shared_ptr<task>& there = task_of(key);
  if (may_be_gone(there) && taken) there = nullptr;
  expect(taken == !is_live(there), "whether a key was free");
  if (taken) there = t;
}

void tasks_run::run(int key, const std::shared_ptr<task>& t)
{
  expect(!calling_, "a function was called inline");
  std::shared_ptr<task>& there = task_of(key);
  tell("{{ task {} runs at {}", t->number, elapsed().count());
  expect(there == t, "a function that had been cancelled ran");
  expect(!t->is_cancelled, "a function ran after cancel_all()");
  expect(!t->is_refused, "a function ran whose wait had been refused");
  expect(!t->running, "a function ran twice at a time");
  expect_due(t->turn, t->set, t->set, "a function");
  if (t->times != many) --t->times;
  if (t->period == 0ns || t->times == 0) {
    there = nullptr;
  } else {
    t->running = true;
    t->moved = false;
  }
  try {
    perform_inside(t->does);
  } catch (...) {
    ended(*t);
    throw;
  }
  ended(*t);
}

void tasks_run::ended(task& t)
{
  tell("}}");
  if (!t.running) return;
  t.turn = next_turn(t);
  if (!t.moved) t.set = wheel.now();
  t.running = false;
}

/// While a function that repeats runs, the turn after it.
time_point tasks_run::next_turn(const task& t) const
{
  return t.running && !t.moved ? first_ahead(t.turn, t.period) : t.turn;
}

void tasks_run::reschedule(operands& o)
{
  const int key = take_key(o);
  const duration delay = take_delay(o);
  const std::shared_ptr<task>& there = task_of(key);
  const bool moved = scheduler_->reschedule(key, delay);
  tell("reschedule {} to {}: {}", key, delay.count(), moved);
  if (!there || !there->is_refused)
    expect(moved == (there && !there->is_cancelled), "whether a task was moved");
  if (!moved || !there) return;
  there->turn = wheel.now() + delay;
  there->set = wheel.now();
  there->moved = true;
}

void tasks_run::cancel_task(operands& o)
{
  const int key = take_key(o);
  std::shared_ptr<task>& there = task_of(key);
  const bool cancelled = scheduler_->cancel(key);
  tell("cancel {}: {}", key, cancelled);
  if (!may_be_gone(there)) expect(cancelled == is_live(there), "whether a task was cancelled");
  there = nullptr;
}

/// Returns true if a run is to come, or if the refusal of its wait is to be told.
bool tasks_run::is_live(const std::shared_ptr<task>& t)
{
  return t && (!t->is_cancelled || t->is_refused);
}

/// Handlers are running, and that of a refused wait may have.
bool tasks_run::may_be_gone(const std::shared_ptr<task>& t) const
{
  return inside_ && t && t->is_refused;
}

void tasks_run::clear()
{
  tell("another scheduler");
  scheduler_.emplace(wheel);
  for (auto& t : tasks_) t = nullptr;
}

}  // namespace model
