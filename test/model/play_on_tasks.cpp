// Plays a script on tasks by key, heartbeats and an interval of one wheel, and on a model of them:
// when each is to come next.
#include <algorithm>
#include <array>
#include <asio_wheel/heartbeat.hpp>
#include <asio_wheel/keyed_scheduler.hpp>
#include <asio_wheel/wheel_interval.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/script.hpp"
#include "support/other_thread.hpp"
#include "support/virtual_wheel.hpp"

namespace model {
namespace {

using namespace asio_wheel;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;

wheel_options options_for(operands o)
{
  wheel_options options;
  options.tick = std::array<duration, 4>{1ms, 100us, 3ms, 20ms}[o.take(2)];
  options.slots = std::array<std::size_t, 2>{8, 64}[o.take(1)];
  options.shards = 1 + o.take(1);
  if (o.take(2) == 0) options.max_pending = 1 + o.take(3);
  return options;
}

/// Thrown by a function or a handler when a script demands it.
struct thrown_by_script {};

class tasks_run : support::wheel_in_virtual_time {
public:
  /// The settings are apart, so that one of them does not decide another.
  tasks_run(operands of_wheel, operands settings) : wheel_in_virtual_time(options_for(of_wheel))
  {
    scheduler_.emplace(wheel);
    for (beat& b : beats_) make(b, settings);
    make_interval(settings);
    two_threads_ = options().shards == 2 && settings.take(2) == 0;
  }

  std::string play(script_view words)
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

private:
  struct task {
    int number = 0;
    time_point turn{};
    time_point set{};           ///< when the turn was
    duration period{};          ///< zero: runs once
    std::uint64_t times = 1;    ///< runs to come; of `many`, for ever
    bool running = false;       ///< and will run again
    bool moved = false;         ///< while it was running
    bool is_cancelled = false;  ///< by cancel_all(): it goes when handlers run
    bool is_refused = false;    ///< its wait was: it goes when handlers run
    std::uint64_t does = 0;     ///< what its function does
  };

  struct beat {
    std::optional<heartbeat> object;
    duration interval{};
    int max_missed = 0;
    time_point sent{}, received{};
    time_point reported = time_point::min();
  };

  /// A pending async_next or async_tick.
  struct operation {
    int number = 0;
    beat* of = nullptr;  ///< null: of the interval
    time_point started{};
    int began = 0;  ///< of the interval: how many ticks had been taken
    bool is_cancelled = false;
    bool may_be_late_to_cancel = false;
    bool is_refused = false;
    std::uint64_t does = 0;
  };

  static constexpr std::uint64_t many = 7;

  void perform(operands& o)
  {
    const bool elsewhere = two_threads_ && o.take(1) == 0;
    if (!elsewhere || on_other_thread_) return act(o);
    on_other_thread_ = true;
    support::in_other_thread([&] { act(o); });
    on_other_thread_ = false;
  }

  void act(operands& o)
  {
    calling_ = true;
    const bool done = act_on_something(o);
    calling_ = false;
    if (done || inside_ || on_other_thread_) return;
    o.take(2) == 0 ? run_ready() : advance(o);
  }

  bool act_on_something(operands& o)
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

  // Tasks.

  [[nodiscard]] auto function(int key, const std::shared_ptr<task>& t)
  {
    return [this, key, t, life = life_] { run(key, t); };
  }

  void run_after(operands& o)
  {
    const int key = take_key(o);
    const duration delay = take_delay(o);
    auto t = make_task(o, delay);
    const bool taken = scheduler_->run_after(key, delay, function(key, t));
    tell("run {} after {}: task {}, {}", key, delay.count(), t->number, taken);
    scheduled(key, t, taken);
  }

  void run_every(operands& o)
  {
    const int key = take_key(o);
    const duration period = std::max(take_delay(o), duration(1));
    auto t = make_task(o, period);
    t->period = period;
    t->times = 1 + o.take(3);
    if (t->times > many) t->times = many;
    const bool taken =
      scheduler_->run_every(key, period, function(key, t), t->times == many ? forever : t->times);
    tell("run {} every {}, {} times: task {}, {}", key, period.count(), t->times, t->number, taken);
    scheduled(key, t, taken);
  }

  std::shared_ptr<task> make_task(operands& o, duration delay)
  {
    auto t = std::make_shared<task>();
    t->number = ++numbers_;
    t->turn = wheel.now() + delay;
    t->set = wheel.now();
    t->does = o.take(24);
    t->is_refused = is_full();
    return t;
  }

  void scheduled(int key, const std::shared_ptr<task>& t, bool taken)
  {
    std::shared_ptr<task>& there = task_of(key);
    if (may_be_gone(there) && taken) there = nullptr;
    expect(taken == !there, "whether a key was free");
    if (taken) there = t;
  }

  void run(int key, const std::shared_ptr<task>& t)
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

  void ended(task& t)
  {
    tell("}}");
    if (!t.running) return;
    t.turn = next_turn(t);
    if (!t.moved) t.set = wheel.now();
    t.running = false;
    t.is_refused = is_full();
  }

  /// While a function that repeats runs, the turn after it.
  [[nodiscard]] time_point next_turn(const task& t) const
  {
    return t.running && !t.moved ? first_ahead(t.turn, t.period) : t.turn;
  }

  void reschedule(operands& o)
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

  void cancel_task(operands& o)
  {
    const int key = take_key(o);
    std::shared_ptr<task>& there = task_of(key);
    const bool cancelled = scheduler_->cancel(key);
    tell("cancel {}: {}", key, cancelled);
    if (!may_be_gone(there))
      expect(cancelled == (there != nullptr), "whether a task was cancelled");
    there = nullptr;
  }

  /// Handlers are running, and that of a wait that was ended may have.
  [[nodiscard]] bool may_be_gone(const std::shared_ptr<task>& t) const
  {
    return inside_ && t && (t->is_cancelled || t->is_refused);
  }

  void clear()
  {
    tell("another scheduler");
    scheduler_.emplace(wheel);
    for (auto& t : tasks_) t = nullptr;
  }

  // Heartbeats.

  void make(beat& b, operands& o)
  {
    b = {};
    b.interval = options().tick / 4 * static_cast<int>(1 + o.take(6));
    b.max_missed = static_cast<int>(1 + o.take(2));
    b.sent = b.received = wheel.now();
    b.object.emplace(wheel, heartbeat_options{b.interval, static_cast<unsigned>(b.max_missed)});
  }

  void start_beat(operands& o)
  {
    beat& b = beats_[o.take(1)];
    if (operations_.size() > 8) return;
    const auto op = begin(&b, o);
    tell("next event of heartbeat {}: operation {}", &b - beats_.data(), op->number);
    b.object->async_next([this, op, life = life_](error_code ec, heartbeat_event event) {
      expect(!calling_, "a handler was called inline");
      tell("{{ operation {} at {}: {}, {}", op->number, elapsed().count(), ec.message(),
           event == heartbeat_event::send_ping ? "ping" : "lost");
      if (ec)
        expect(is_expected(*op, ec), "an error of a heartbeat");
      else
        happened(*op, event);
      over(op);
    });
  }

  void happened(const operation& op, heartbeat_event event)
  {
    expect(!op.is_cancelled && !op.is_refused, "an event that had been cancelled or refused");
    beat& b = *op.of;
    expect_due(deadline_of(b), op.started, op.started, "an event");
    b.reported = wheel.now();
    const bool lost = lost_at(b) <= wheel.now();
    expect((event == heartbeat_event::peer_lost) == lost, "which event it was");
  }

  [[nodiscard]] static time_point lost_at(const beat& b)
  {
    return b.received + b.interval * b.max_missed;
  }
  [[nodiscard]] static time_point deadline_of(const beat& b)
  {
    const time_point idle = std::max(std::min(b.sent, b.received), b.reported) + b.interval;
    return lost_at(b) > b.reported ? std::min(idle, lost_at(b)) : idle;
  }

  void say_sent(operands& o)
  {
    beat& b = beats_[o.take(1)];
    tell("heartbeat {} sent", &b - beats_.data());
    b.object->sent();
    b.sent = wheel.now();
  }

  void say_received(operands& o)
  {
    beat& b = beats_[o.take(1)];
    tell("heartbeat {} received", &b - beats_.data());
    b.object->received();
    b.received = wheel.now();
  }

  void cancel_beat(operands& o)
  {
    beat& b = beats_[o.take(1)];
    tell("cancel heartbeat {}", &b - beats_.data());
    expect(b.object->cancel() == cancelled_of(&b), "how many a heartbeat cancelled");
  }

  void move_beat(operands& o)
  {
    const auto number = o.take(1);
    beat& to = beats_[number];
    beat& from = beats_[1 - number];
    tell("move a heartbeat to {}", &to - beats_.data());
    cancelled_of(&to);
    *to.object = std::move(*from.object);
    for (const auto& op : operations_)
      if (op->of == &from) op->of = &to;
    to.interval = from.interval;
    to.max_missed = from.max_missed;
    to.sent = from.sent;
    to.received = from.received;
    to.reported = from.reported;
  }

  // The interval.

  void make_interval(operands& o)
  {
    period_ = options().tick / 4 * static_cast<int>(1 + o.take(6));
    missed_ = std::array{missed_tick::burst, missed_tick::delay, missed_tick::skip,
                         missed_tick::skip}[o.take(2)];
    next_ = wheel.now();
    interval_.emplace(wheel, period_, missed_);
  }

  void start_tick(operands& o)
  {
    if (operations_.size() > 8) return;
    const auto op = begin(nullptr, o);
    op->began = taken_;
    tell("next tick: operation {}", op->number);
    interval_->async_tick([this, op, life = life_](error_code ec, time_point tick) {
      expect(!calling_, "a handler was called inline");
      tell("{{ operation {} at {}: {}, tick {}", op->number, elapsed().count(), ec.message(),
           (tick - start).count());
      if (ec)
        expect(is_expected(*op, ec), "an error of an interval");
      else
        took(*op, tick);
      over(op);
    });
  }

  void took(const operation& op, time_point tick)
  {
    expect(!op.is_cancelled || op.may_be_late_to_cancel, "a tick that had been cancelled");
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

  void reset_interval()
  {
    tell("reset the interval");
    interval_->reset();
    next_ = wheel.now() + period_;
    set_ = wheel.now();
    shared_until_ = 0;
  }

  void cancel_interval()
  {
    tell("cancel the interval");
    interval_->cancel();
    const bool on_its_way = next_ <= wheel.now();
    for (const auto& op : operations_) {
      if (op->of || op->is_cancelled) continue;
      op->is_cancelled = true;
      op->may_be_late_to_cancel = on_its_way || op->began < shared_until_;
    }
  }

  // All of them.

  std::shared_ptr<operation> begin(beat* of, operands& o)
  {
    auto op = std::make_shared<operation>();
    op->number = ++numbers_;
    op->of = of;
    op->started = wheel.now();
    op->does = o.take(24);
    op->is_refused = is_full();
    operations_.push_back(op);
    return op;
  }

  void over(const std::shared_ptr<operation>& op)
  {
    std::erase(operations_, op);
    const struct end {
      ~end() { tell("}}"); }
    } when_over;
    perform_inside(op->does);
  }

  /// The waits of the interval are filed anew when its rhythm changes.
  [[nodiscard]] bool is_expected(const operation& op, error_code ec) const
  {
    if (ec == asio::error::operation_aborted) return op.is_cancelled;
    return ec == wheel_errc::too_many_pending && (op.is_refused || !op.of) &&
           options().max_pending != 0;
  }

  std::size_t cancelled_of(const beat* b)
  {
    std::size_t n = 0;
    for (const auto& op : operations_) {
      if (op->of != b || op->is_cancelled || op->is_refused) continue;
      op->is_cancelled = true;
      ++n;
    }
    return n;
  }

  void cancel_all()
  {
    tell("cancel all");
    wheel.cancel_all();
    for (const auto& op : operations_) {
      op->is_cancelled = true;
      op->may_be_late_to_cancel = false;
    }
    for (const auto& t : tasks_)
      if (t && !t->running) t->is_cancelled = true;
  }

  /// What a function or a handler does.
  void perform_inside(std::uint64_t word)
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

  void run_ready()
  {
    tell("run what is ready");
    settle();
  }

  void settle()
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

  void advance(operands& o)
  {
    const time_point to = wheel.now() + options().tick / 4 * static_cast<int>(o.take(6));
    tell("advance to {}", (to - start).count());
    until_nothing_is_thrown([this, to] { time.advance(to - wheel.now()); });
    settle();
    expect(wheel.now() == to, "where advance() went");
    expect_nothing_overdue();
  }

  template <class Function>
  void until_nothing_is_thrown(Function f)
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

  void expect_nothing_overdue()
  {
    const auto is_overdue = [this](time_point t) { return ceil(t) <= wheel.now(); };
    for (const auto& t : tasks_) expect(!t || !is_overdue(t->turn), "a task is overdue");
    for (const auto& op : operations_) {
      expect(!is_overdue(op->of ? deadline_of(*op->of) : next_), "an operation is overdue");
      expect(op->of || op->began >= shared_until_, "a tick was not shared");
    }
    std::size_t waits = operations_.size();
    for (const auto& t : tasks_) waits += t != nullptr;
    expect(wheel.pending() == waits, "pending()");
  }

  /// What must be true between two acts.
  void compare()
  {
    std::size_t live = 0;
    for (int key = 0; key < static_cast<int>(tasks_.size()); ++key) {
      const std::shared_ptr<task>& t = task_of(key);
      live += t != nullptr;
      expect(scheduler_->contains(key) == (t != nullptr), "contains()");
      const auto expiry = scheduler_->expiry(key);
      expect(expiry == (t ? std::optional(next_turn(*t)) : std::nullopt), "expiry()");
    }
    expect(scheduler_->size() == live, "size()");
  }

  /// Whether what was set at `set` to come at `deadline`, and was waited for since `started`, comes
  /// now, and should.
  void expect_due(time_point deadline, time_point set, time_point started, const char* what)
  {
    const time_point due = deadline <= set ? set : ceil(deadline);
    if (wheel.now() < deadline) expect(false, fmt::format("{} is early", what));
    expect(wheel.now() == std::max(due, started), fmt::format("{} is late", what));
  }

  /// The first of t, t + period, ... that has not come.
  [[nodiscard]] time_point first_ahead(time_point t, duration period) const
  {
    return t > wheel.now() ? t : t + period * ((wheel.now() - t) / period + 1);
  }

  [[nodiscard]] time_point ceil(time_point t) const
  {
    const duration since = t - start, tick = options().tick;
    const auto ticks = since / tick + (since % tick > 0ns);
    return start + ticks * tick;
  }

  [[nodiscard]] const wheel_options& options() const { return wheel.options(); }

  [[nodiscard]] static int take_key(operands& o) { return static_cast<int>(o.take(2)); }
  [[nodiscard]] std::shared_ptr<task>& task_of(int key)
  {
    return tasks_[static_cast<std::size_t>(key)];
  }
  /// Up to 15 ticks, by quarters; one in sixteen is zero or less.
  [[nodiscard]] duration take_delay(operands& o) const
  {
    return options().tick / 4 * (static_cast<int>(o.take(6)) - 3);
  }

  [[nodiscard]] bool is_full() const
  {
    return options().max_pending != 0 && wheel.pending() >= options().max_pending;
  }

  void expect(bool as_it_should_be, const std::string& what)
  {
    if (!as_it_should_be && fault_.empty()) fault_ = what;
  }

  const std::shared_ptr<int> life_ = std::make_shared<int>();
  std::optional<keyed_scheduler<int>> scheduler_;
  std::array<std::shared_ptr<task>, 4> tasks_;
  std::array<beat, 2> beats_;
  std::vector<std::shared_ptr<operation>> operations_;

  std::optional<wheel_interval> interval_;
  duration period_{};
  missed_tick missed_{};
  time_point next_{}, last_tick_{};
  time_point set_{};      ///< when the next tick was
  int taken_ = 0;         ///< ticks
  int shared_until_ = 0;  ///< those that began before get the last tick

  int numbers_ = 0;
  bool two_threads_ = false;  ///< a second one also acts, never at the same time
  bool on_other_thread_ = false;
  bool inside_ = false;   ///< a function or a handler
  bool calling_ = false;  ///< a function of the library that must not call handlers
  int calls_left_ = 0;    ///< that do anything: a function may move its next run to the present
  bool ending_ = false;
  std::string fault_;
};

}  // namespace

std::string play_on_tasks(script_view words)
{
  const operands of_wheel = take_first(words);
  return tasks_run(of_wheel, take_first(words)).play(words);
}

}  // namespace model
