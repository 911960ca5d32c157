// How a script is played, word by word.
#include "model/tasks_run.hpp"

#include <algorithm>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "support/other_thread.hpp"

namespace model {
namespace {

wheel_options options_for(operands o)
{
  wheel_options options;
  options.tick = std::array<duration, 4>{1ms, 100us, 3ms, 20ms}[o.take(2)];
  options.slots = std::array<std::size_t, 2>{8, 64}[o.take(1)];
  options.shards = 1 + o.take(1);
  if (o.take(2) == 0) options.max_pending = 1 + o.take(3);
  return options;
}

}  // namespace

std::string play_on_tasks(script_view words)
{
  const operands of_wheel = take_first(words);
  return tasks_run(of_wheel, take_first(words)).play(words);
}

tasks_run::tasks_run(operands of_wheel, operands settings)
  : wheel_in_virtual_time(options_for(of_wheel))
{
  scheduler_.emplace(wheel);
  for (beat& b : beats_) make(b, settings);
  make_interval(settings);
  two_threads_ = options().shards == 2 && settings.take(2) == 0;
}

std::string tasks_run::play(script_view words)
{
  for (; !words.empty() && fault_.empty(); words = words.subspan(1)) {
    operands o(words.front());
    calls_left_ = 100;
    perform(o);
    compare();
  }
  ending_ = true;
  cancel_all();
  run_ready();
  compare();
  scheduler_.reset();
  run_ready();
  expect(wheel.pending() == 0, "pending() at the end");
  expect(life_.use_count() == 1, "a function or a handler that is left");
  return fault_;
}

void tasks_run::perform(operands& o)
{
  const bool elsewhere = two_threads_ && o.take(1) == 0;
  if (!elsewhere || on_other_thread_) return act(o);
  on_other_thread_ = true;
  support::in_other_thread([&] { act(o); });
  on_other_thread_ = false;
}

void tasks_run::act(operands& o)
{
  calling_ = true;
  const bool done = act_on_something(o);
  calling_ = false;
  if (done || inside_ || on_other_thread_) return;
  o.take(2) == 0 ? run_ready() : advance(o);
}

bool tasks_run::act_on_something(operands& o)
{
  switch (o.take(5)) {
    case 0:
    case 1:
    case 2:
    case 3: return run_after(o), true;
    case 4:
    case 5:
    case 6: return run_every(o), true;
    case 7:
    case 8:
    case 9: return reschedule(o), true;
    case 10: return cancel_task(o), true;
    case 11:
    case 12:
    case 13: return start_beat(o), true;
    case 14: return say_sent(o), true;
    case 15: return say_received(o), true;
    case 16: return cancel_beat(o), true;
    case 17: return move_beat(o), true;
    case 18:
    case 19: return start_tick(o), true;
    case 20: return reset_interval(), true;
    case 21: return cancel_interval(), true;
    case 22: return o.take(1) == 0 ? cancel_all() : clear(), true;
    default: return false;
  }
}

/// What a function or a handler does.
void tasks_run::perform_inside(std::uint64_t word)
{
  operands o(word);
  if (ending_ || !fault_.empty() || calls_left_ == 0) return;
  --calls_left_;
  const bool before = std::exchange(inside_, true);
  if (o.take(1) == 1) perform(o);
  inside_ = before;
  if (o.take(3) == 1) {
    tell("throws");
    throw thrown_by_script{};
  }
}

void tasks_run::cancel_all()
{
  tell("cancel all");
  std::size_t live = 0;
  for (const auto& op : operations_) {
    if (!op->is_cancelled && !op->is_refused) ++live;
    op->is_cancelled = true;
  }
  for (const auto& t : tasks_) {
    if (!t) continue;
    if (!t->is_cancelled && !t->is_refused) ++live;
    t->is_cancelled = true;  // also one that runs
  }
  expect(wheel.cancel_all() == live, "how many cancel_all() has cancelled");
  expect(wheel.pending() == 0, "pending() after cancel_all()");
}

template <class Function>
void tasks_run::until_nothing_is_thrown(Function f)
{
  while (fault_.empty()) {
    try {
      return f();
    } catch (thrown_by_script) {
    } catch (const boost::system::system_error& e) {
      expect(e.code() == wheel_errc::too_many_pending, "what a task has thrown");
    } catch (const asio::multiple_exceptions&) {
    }
  }
}

void tasks_run::run_ready()
{
  tell("run what is ready");
  settle();
}

void tasks_run::settle()
{
  until_nothing_is_thrown([this] {
    if (context.stopped()) context.restart();
    context.poll();
  });
  for (auto& t : tasks_)
    if (t && (t->is_cancelled || t->is_refused)) t = nullptr;
  for (const auto& op : operations_)
    expect(!op->is_cancelled && !op->is_refused, "a cancelled operation did not end");
}

void tasks_run::advance(operands& o)
{
  const time_point to = wheel.now() + options().tick / 4 * static_cast<int>(o.take(6));
  tell("advance to {}", (to - start).count());
  until_nothing_is_thrown([this, to] { time.advance(to - wheel.now()); });
  settle();
  expect(wheel.now() == to, "where advance() went");
  expect_nothing_overdue();
}

void tasks_run::expect_nothing_overdue()
{
  const auto is_overdue = [this](time_point t) { return ceil(t) <= wheel.now(); };
  for (const auto& t : tasks_) expect(!t || !is_overdue(t->turn), "a task is overdue");
  for (const auto& op : operations_) {
    expect(!is_overdue(op->of ? op->of->deadline() : next_), "an operation is overdue");
    expect(op->of || op->began >= shared_until_, "a tick was not shared");
  }
  std::size_t waits = operations_.size();
  for (const auto& t : tasks_) waits += t != nullptr;
  expect(wheel.pending() == waits, "pending()");
}

/// What must be true between two acts.
void tasks_run::compare()
{
  std::size_t held = 0;
  for (int key = 0; key < static_cast<int>(tasks_.size()); ++key) {
    const std::shared_ptr<task>& t = task_of(key);
    held += t != nullptr;
    expect(scheduler_->contains(key) == is_live(t), "contains()");
    const auto expiry = scheduler_->expiry(key);
    expect(expiry == (is_live(t) ? std::optional(next_turn(*t)) : std::nullopt), "expiry()");
  }
  expect(scheduler_->size() == held, "size()");
}

/// Whether what was set at `set` to come at `deadline`, and was waited for since `started`, comes
/// now, and should.
void tasks_run::expect_due(time_point deadline, time_point set, time_point started,
                           const char* what)
{
  const time_point due = deadline <= set ? set : ceil(deadline);
  if (wheel.now() < deadline) report(fmt::format("{} is early", what));
  if (wheel.now() != std::max(due, started)) report(fmt::format("{} is late", what));
}

/// The first of t, t + period, ... that has not come.
time_point tasks_run::first_ahead(time_point t, duration period) const
{
  return t > wheel.now() ? t : t + period * ((wheel.now() - t) / period + 1);
}

time_point tasks_run::ceil(time_point t) const
{
  const duration since = t - start, tick = options().tick;
  const auto ticks = since / tick + (since % tick > 0ns);
  return start + ticks * tick;
}

/// Up to 15 ticks, by quarters; one in sixteen is zero or less.
duration tasks_run::take_delay(operands& o) const
{
  return options().tick / 4 * (static_cast<int>(o.take(6)) - 3);
}

duration tasks_run::take_period(operands& o) const
{
  return options().tick / 4 * static_cast<int>(1 + o.take(6));
}

bool tasks_run::is_full() const
{
  return options().max_pending != 0 && wheel.pending() >= options().max_pending;
}

}  // namespace model

// In one unit with this file, which has what their handlers are compiled with.
#include "model/tasks_run_by_key.ipp"
#include "model/tasks_run_heartbeats.ipp"
#include "model/tasks_run_interval.ipp"
#include "model/tasks_run_operations.ipp"
