// Plays a script in virtual time on a wheel with timers, watchdogs and operations with deadlines,
// and on a model, a list of pending waits.
//
// The script's own time begins ten years from now. So no pending wait becomes due when the clock
// goes back to the real present, and the model need not know the time there: in the present, a
// script uses only time points of its own time, or of the distant past.
#pragma once

#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "model/limited_run.hpp"
#include "model/pending_waits.hpp"
#include "model/script.hpp"
#include "support/other_thread.hpp"
#include "support/own_executor.hpp"

namespace model {

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

/// What the first word of a script means.
struct service_settings {
  explicit service_settings(operands o)
  {
    options.tick = std::array<duration, 4>{1ms, 1us, 12'345us, 1h}[o.take(2)];
    options.slots = std::array<std::size_t, 4>{8, 2, 4, 64}[o.take(2)];
    options.shards = o.take(1) == 0 ? 1 : 2;
    options.max_pending = o.take(2) == 3 ? 1 + o.take(3) : 0;
    two_threads = options.shards == 2 && o.take(2) < 2;
    runs_to_end = o.take(1) == 0;
    timers_go_first = o.take(1) == 0;
    clock_goes_first = o.take(1) == 0;
    operations_outlive = static_cast<int>(o.take(2));
    has_own_executor = o.take(2) == 0;
    others_refuse = o.take(2) == 0;
  }

  wheel_options options;
  bool two_threads;  ///< a second one also starts and cancels waits, never at the same time
  bool runs_to_end;  ///< else the context is destroyed with whatever is pending
  bool timers_go_first;
  bool clock_goes_first;
  int operations_outlive;  ///< how many of the two contexts
  bool has_own_executor;   ///< the context's is support::own_executor
  bool others_refuse;      ///< the executor of the foreign handlers, now and then
};

class service_run {
public:
  explicit service_run(const service_settings& s);

  /// Says what is wrong, as a player does.
  [[nodiscard]] std::string play_all(script_view words);

private:
  struct timer {
    std::optional<wheel_timer> object;
    time_point expiry;
    std::optional<std::uint64_t> tick;  ///< none: the expiry had passed when it was set
  };

  struct watchdog {
    std::optional<wheel_watchdog> object;
    time_point touched;
    duration timeout{};

    [[nodiscard]] time_point deadline() const { return add(touched, timeout); }
  };

  /// The handler of every wait.
  struct recorder {
    service_run* run;
    std::shared_ptr<wait> w;
    void operator()(error_code ec) { run->complete(*w, ec); }
  };

  /// The handler of every operation.
  struct result_recorder {
    service_run* run;
    std::shared_ptr<limited_run> op;
    void operator()(error_code ec, int n) { run->deliver(*op, ec, n); }
  };

  /// Lives while a context runs a function or a handler.
  class [[nodiscard]] inside {
  public:
    explicit inside(service_run& run) : run_(run)
    {
      run.expect(!run.calling_, "a handler was called inline");
      ++run.depth_;
    }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside() { --run_.depth_; }

  private:
    service_run& run_;
  };

  void play(script_view words);
  void perform(operands& o, script_view& rest);
  bool start_something(std::uint64_t what, operands& o, script_view& rest);
  bool end_something(std::uint64_t what, operands& o);
  void perform_outside(operands& o);

  [[nodiscard]] duration delay(operands& o) const;
  [[nodiscard]] time_point deadline(operands& o);
  [[nodiscard]] timer& pick_timer(operands& o) { return timers_[o.take(2)]; }
  [[nodiscard]] int number_of(const timer& t) const
  {
    return static_cast<int>(&t - timers_.data());
  }
  [[nodiscard]] watchdog& pick_watchdog(operands& o) { return watchdogs_[o.take(1)]; }
  [[nodiscard]] int number_of(const watchdog& d) const
  {
    return static_cast<int>(&d - watchdogs_.data());
  }
  [[nodiscard]] std::uint64_t tick_for(time_point t) const
  {
    return waits_->line().tick_for(t, wheel_.now());
  }
  [[nodiscard]] std::optional<std::uint64_t> tick_ahead(time_point t) const
  {
    return t > wheel_.now() ? std::optional(tick_for(t)) : std::nullopt;
  }

  // Starts of waits, and their completions: service_run_starts.ipp.

  void wait_for(operands& o, script_view& rest);
  void wait_until(operands& o, script_view& rest);
  void wait_until(time_point t, operands& o, script_view& rest);
  void wait_on_timer(operands& o, script_view& rest);
  void wait_on_watchdog(operands& o, script_view& rest);
  template <class Initiate>
  void start(wait w, operands& o, script_view& rest, Initiate initiate);
  template <class Initiate>
  void start_one(const wait& what, Initiate initiate);
  void complete(wait& w, error_code ec);
  void post(operands& o, script_view& rest);
  static script_view take_body(operands& o, script_view& rest);
  static int take_signal(operands& o);
  void take_slot(int signal);

  // Ends of waits: service_run_cancels.ipp.

  void cancel(operands& o);
  void cancel_one(operands& o);
  void expire_after(operands& o);
  void expire_at(operands& o);
  template <class Set>
  void set_expiry(operands& o, timer& t, time_point expiry, Set set);
  void move_construct(operands& o);
  void move_assign(operands& o);
  void take_over(timer& to, timer& from);
  void make_anew(operands& o);
  void emit(operands& o);
  void make_signal_anew(operands& o);
  void cancel_all(operands& o);
  [[nodiscard]] pending_waits::list waits_of(const timer& t) const;
  void let_go_of_waits(const timer& t);

  template <class Function>
  std::size_t count_cancelled(operands& o, Function f);
  template <class Function>
  void expect_cancelled(operands& o, const pending_waits::list& waits, Function f);
  template <class Function>
  void call(bool elsewhere, Function f);
  template <class Function>
  void in_thread(bool elsewhere, Function f);
  [[nodiscard]] bool take_elsewhere(operands& o)
  {
    const bool elsewhere = settings_.two_threads && o.take(1) == 1;
    return elsewhere || on_other_thread_;
  }

  // Watchdogs: service_run_watchdogs.ipp.

  void touch(operands& o);
  void set_timeout(operands& o);
  void end_watch(operands& o);
  void move_watchdog(watchdog& to, watchdog& from, bool construct, operands& o);
  [[nodiscard]] duration take_timeout(operands& o) const;
  [[nodiscard]] pending_waits::list waits_of(const watchdog& d) const;
  void let_go_of_waits(const watchdog& d);

  // Operations with deadlines: service_run_operations.ipp.

  void start_operation(operands& o, script_view& rest);
  void initiated(limited_run& op);
  void cancelled(limited_run& op, asio::cancellation_type_t type);
  void fired(limited_run& op);
  void react(limited_run& op, reaction how, bool posted);
  void end_operation(operands& o);
  void end_operation(limited_run& op, reaction how, bool elsewhere);
  void set_ended(limited_run& op, error_code own);
  void deliver(limited_run& op, error_code ec, int n);
  void end_operations();
  void expect_operations_delivered(bool everywhere);
  void compare_operations();

  // Time, and the end of it: service_run_time.cpp, service_run_end.ipp.

  [[nodiscard]] bool at_present() const { return wheel_.now() < beginning_; }
  void advance(duration d);
  void advance_to_next();
  void recover();
  [[nodiscard]] bool some_are_beyond_time() const;
  [[nodiscard]] bool some_expire_unseen() const;
  void run_one_handler();
  void run_one_handler_elsewhere();
  void leave_time();
  void perform_at_present(operands& o);
  void come_back(std::uint64_t tick);
  void settle();
  void settle_everywhere();
  void expect_settled();
  void destroy_other_context(operands& o);
  void run_to_end();
  void expect_work();
  void expect_stats();
  void destroy();
  void end_operations_at_end();
  void destroy_timers();

  void compare();
  void expect(bool ok, const char* what)
  {
    if (!ok) report(fmt::format("wrong: {}", what));
  }
  void report(const std::string& fault)
  {
    if (fault_.empty()) fault_ = fault;
  }

  [[nodiscard]] asio::any_io_executor executor_of_wheel();
  [[nodiscard]] asio::any_io_executor executor_of_others();
  [[nodiscard]] bool executor_has_memory();
  void start_time();

  const service_settings settings_;
  const std::function<bool()> takes_ = [this] {
    if (!executor_has_memory()) throw std::bad_alloc();
    return true;
  };
  const std::function<bool()> others_take_ = [this] {
    if (++asked_others_ % 3 == 0) throw thrown_by_script{};
    return true;
  };
  unsigned asked_for_memory_ = 0, asked_others_ = 0;
  std::optional<asio::io_context> context_;
  std::optional<asio::io_context> other_context_;  ///< runs the foreign handlers
  wheel_timer_service& wheel_;
  std::optional<virtual_time> time_;
  std::array<timer, 4> timers_;
  std::array<watchdog, 2> watchdogs_;
  std::array<std::shared_ptr<limited_run>, 4> operations_;
  std::array<std::optional<asio::cancellation_signal>, 4> signals_;
  std::optional<pending_waits> waits_;
  std::uint64_t first_tick_ = 0;  ///< first of the script's time
  time_point beginning_;          ///< when that tick begins
  int operations_started_ = 0;
  int emitting_ = -1;  ///< the signal that is being emitted
  bool on_other_thread_ = false;
  bool over_ = false;     ///< the script has ended
  int posted_ = 0;        ///< posted functions that have not been called
  int recovered_ = 0;     ///< how often a handler threw
  int depth_ = 0;         ///< how many of the contexts' functions are on the stack
  bool calling_ = false;  ///< in a function that must not call handlers
  bool settled_ = true;   ///< nothing is due or ready
  std::string fault_;
};

/// How many waits `f` cancels: its result, if it has one.
template <class Function>
std::size_t service_run::count_cancelled(operands& o, Function f)
{
  const std::size_t before = wheel_.pending();
  const std::uint64_t met = waits_->met;
  std::optional<std::size_t> returned;
  call(take_elsewhere(o), [&] {
    if constexpr (std::is_void_v<decltype(f())>)
      f();
    else
      returned = f();
  });
  const std::size_t n = before - wheel_.pending() - (waits_->met - met);
  expect(!returned || *returned == n, "the number of waits cancelled that was returned");
  return n;
}

template <class Function>
void service_run::expect_cancelled(operands& o, const pending_waits::list& waits, Function f)
{
  report(waits_->cancelled(waits, count_cancelled(o, f)));
}

/// Calls a function of the wheel that must not call handlers.
template <class Function>
void service_run::call(bool elsewhere, Function f)
{
  const bool before = std::exchange(calling_, true);
  in_thread(elsewhere, f);
  calling_ = before;
}

template <class Function>
void service_run::in_thread(bool elsewhere, Function f)
{
  if (!elsewhere || on_other_thread_) return f();
  on_other_thread_ = true;
  support::in_other_thread(f);
  on_other_thread_ = false;
}

}  // namespace model
