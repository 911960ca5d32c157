// How a script is played, word by word.
#include "model/service_run.hpp"

#include <algorithm>
#include <limits>

namespace model {

std::string play_on_service(script_view words)
{
  const service_settings s(take_first(words));
  return service_run(s).play_all(words);
}

service_run::service_run(const service_settings& s)
  : settings_(s),
    context_(std::in_place),
    other_context_(std::in_place),
    wheel_(asio::make_service<wheel_timer_service>(*context_, executor_of_wheel(), s.options))
{
  start_time();
  // From here on, now is the beginning of a tick.
  wheel_.async_wait(1ns, [](error_code) {});
  time_->advance_to_next();
  const duration tick = s.options.tick;
  const time_line line(wheel_.now() - tick, tick);
  first_tick_ = static_cast<std::uint64_t>(24h * 3650 / tick);
  beginning_ = line.begin_of(first_tick_);
  time_->advance(beginning_ - wheel_.now());
  waits_.emplace(line, s.options.max_pending);
  waits_->now_is(wheel_.now());
  for (auto& t : timers_) t.object.emplace(wheel_);
  for (auto& d : watchdogs_) {
    d.touched = wheel_.now();
    d.timeout = tick;
    d.object.emplace(wheel_, tick);
  }
  for (auto& op : operations_) op = std::make_shared<limited_run>();
  for (auto& signal : signals_) signal.emplace();
  tell("ticks of {}, {} slots, {} shards, at most {} pending{}{}", s.options.tick.count(),
       s.options.slots, s.options.shards, s.options.max_pending,
       s.has_own_executor ? ", an executor of its own" : "",
       s.others_refuse ? ", others that refuse" : "");
}

asio::any_io_executor service_run::executor_of_wheel()
{
  const asio::any_io_executor native = context_->get_executor();
  if (settings_.has_own_executor) return support::own_executor(native, takes_);
  return native;
}

/// Of the foreign handlers.
asio::any_io_executor service_run::executor_of_others()
{
  const asio::any_io_executor native = other_context_->get_executor();
  if (settings_.others_refuse) return support::own_executor(native, others_take_);
  return native;
}

/// Mostly it has. An operation's result is lost without.
bool service_run::executor_has_memory()
{
  const bool running = std::ranges::any_of(
    operations_, [](const auto& op) { return op && op->at != limited_run::stage::over; });
  return running || ++asked_for_memory_ % 3 != 0;
}

void service_run::start_time()
{
  if (!settings_.has_own_executor) {
    time_.emplace(wheel_);
    return;
  }
  time_.emplace(wheel_, [this] {
    if (context_->stopped()) context_->restart();
    context_->poll();
  });
}

std::string service_run::play_all(script_view words)
{
  play(words);
  if (fault_.empty() && settings_.runs_to_end) run_to_end();
  destroy();
  return fault_;
}

void service_run::play(script_view words)
{
  while (!words.empty() && fault_.empty()) {
    operands o(words.front());
    words = words.subspan(1);
    perform(o, words);
    compare();
  }
}

void service_run::perform(operands& o, script_view& rest)
{
  const std::uint64_t what = o.take(6);
  if (what < 32 ? start_something(what, o, rest) : end_something(what - 32, o)) return;
  if (depth_ == 0) return perform_outside(o);
  if (o.take(2) == 0) throw thrown_by_script{};
}

/// Returns whether `what` means anything.
bool service_run::start_something(std::uint64_t what, operands& o, script_view& rest)
{
  if (what < 4) return wait_for(o, rest), true;
  if (what < 8) return wait_until(o, rest), true;
  if (what < 13) return wait_on_timer(o, rest), true;
  if (what < 16) return wait_on_watchdog(o, rest), true;
  if (what < 22) return start_operation(o, rest), true;
  if (what < 24) return post(o, rest), true;
  if (what < 26) return expire_after(o), true;
  if (what < 27) return expire_at(o), true;
  return false;
}

bool service_run::end_something(std::uint64_t what, operands& o)
{
  switch (what) {
    case 0: return cancel(o), true;
    case 1: return cancel_one(o), true;
    case 2: return move_construct(o), true;
    case 3: return move_assign(o), true;
    case 4: return make_anew(o), true;
    case 5:
    case 6:
    case 7: return emit(o), true;
    case 8: return make_signal_anew(o), true;
    case 9: return cancel_all(o), true;
    case 10:
    case 11:
    case 12:
    case 13: return end_operation(o), true;
    case 14:
    case 15: return touch(o), true;
    case 16: return set_timeout(o), true;
    case 17: return end_watch(o), true;
    default: return false;
  }
}

/// Does what a handler must not do.
void service_run::perform_outside(operands& o)
{
  switch (o.take(4)) {
    case 0:
    case 1:
    case 2: return run_one_handler();
    case 3:
    case 4:
    case 5: return run_one_handler_elsewhere();
    case 6: return settle_everywhere();
    case 7:
      if (o.take(1) == 0) destroy_other_context(o);
      return;
    default: break;
  }
  if (at_present()) return perform_at_present(o);
  switch (o.take(3)) {
    case 0:
    case 1:
    case 2:
    case 3: return advance(delay(o));
    case 4:
    case 5:
    case 6: return advance_to_next();
    default:
      if (o.take(1) == 0) leave_time();
  }
}

duration service_run::delay(operands& o) const
{
  const time_line& line = waits_->line();
  switch (o.take(3)) {
    case 0: return 0ns;
    case 1: {
      const duration past = -line.ticks(o.magnitude());
      return wheel_.now() + past < beginning_ ? duration::min() : past;
    }
    case 2: {
      using limits = std::numeric_limits<duration::rep>;
      return duration{std::array{limits::max(), limits::min(), limits::max() - 1,
                                 (time_point::max() - wheel_.now()).count()}[o.take(2)]};
    }
    case 3: {
      const duration whole = line.ticks(o.magnitude());
      const duration part = settings_.options.tick / 256 * static_cast<int>(o.take(8));
      return whole < duration::max() - part ? whole + part : duration::max();
    }
    default: return line.ticks(o.magnitude());
  }
}

time_point service_run::deadline(operands& o)
{
  switch (o.take(3)) {
    case 0: return std::array{time_point::min(), time_point::max()}[o.take(1)];
    case 1: return pick_timer(o).expiry;
    case 2: return add(beginning_, waits_->line().ticks(o.magnitude()));
    default: break;
  }
  const duration d = delay(o);
  if (at_present()) return d > 0ns ? add(beginning_, d) : time_point::min();
  return add(wheel_.now(), d);
}

void service_run::compare()
{
  waits_->now_is(wheel_.now());
  report(waits_->are_pending(wheel_.pending()));
  for (const timer& t : timers_) expect(t.object->expiry() == t.expiry, "expiry()");
  for (const watchdog& d : watchdogs_) expect(d.object->timeout() == d.timeout, "timeout()");
  compare_operations();
}

}  // namespace model

// In one unit with this file, which is all that the fuzzer of test/fuzz links of them.
#include "model/service_run_cancels.ipp"
#include "model/service_run_end.ipp"
#include "model/service_run_operations.ipp"
#include "model/service_run_starts.ipp"
#include "model/service_run_watchdogs.ipp"
