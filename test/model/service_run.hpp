// A script that is being played on a wheel in virtual time, with its timers, and on a list of
// pending waits.
#pragma once

#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/pending_waits.hpp"
#include "model/script.hpp"

namespace model {

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;

/// What the first word of a script says.
struct service_settings {
  explicit service_settings(operands o)
  {
    options.tick = std::array<duration, 4>{1ms, 1us, 12'345us, 1h}[o.take(2)];
    options.slots = std::array<std::size_t, 4>{8, 2, 4, 64}[o.take(2)];
    options.shards = o.take(1) == 0 ? 1 : 2;
    options.max_pending = o.take(2) == 3 ? 1 + o.take(3) : 0;
    two_threads = options.shards == 2 && o.take(2) == 0;
    runs_to_end = o.take(1) == 0;
    timers_go_first = o.take(1) == 0;
    clock_goes_first = o.take(1) == 0;
  }

  wheel_options options;
  bool two_threads;  ///< another one starts and cancels waits, too, though never at the same time
  bool runs_to_end;  ///< or else the context is destroyed with whatever is pending
  bool timers_go_first;
  bool clock_goes_first;
};

/// What a handler throws when a script tells it to.
struct thrown_by_script {};

class service_run {
public:
  explicit service_run(const service_settings& s);

  /// Says what is wrong, as a player does.
  [[nodiscard]] std::string play_all(script_view words);

private:
  struct timer {
    std::optional<wheel_timer> object;
    time_point expiry;
    std::uint64_t tick = 0;
  };

  /// The handler of every wait.
  struct recorder {
    service_run* run;
    std::shared_ptr<wait> w;
    void operator()(error_code ec) { run->complete(*w, ec); }
  };

  /// While a function of the context's runs.
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
  void perform_outside(operands& o);

  [[nodiscard]] duration delay(operands& o) const;
  [[nodiscard]] time_point deadline(operands& o);
  [[nodiscard]] timer& pick_timer(operands& o) { return timers_[o.take(2)]; }
  [[nodiscard]] int number_of(const timer& t) const
  {
    return static_cast<int>(&t - timers_.data());
  }
  [[nodiscard]] std::uint64_t tick_for(time_point t) const
  {
    return waits_->line().tick_for(t, wheel_.now());
  }

  // What starts waits, and what ends them: service_run.cpp.

  void wait_for(operands& o, script_view& rest);
  void wait_until(operands& o, script_view& rest);
  void wait_on_timer(operands& o, script_view& rest);
  template <class Initiate>
  void start(wait w, operands& o, script_view& rest, Initiate initiate);
  template <class Initiate>
  void start_one(const wait& what, Initiate initiate);
  static script_view take_body(operands& o, script_view& rest);
  void complete(wait& w, error_code ec);
  void post(operands& o, script_view& rest);

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

  // Time, and the end of it: service_run_time.cpp.

  void advance(duration d);
  void advance_to_next();
  [[nodiscard]] bool some_are_beyond_time() const;
  void run_one_handler();
  void set_clock_anew();
  void settle();
  void expect_settled();
  void run_to_end();
  void expect_work();
  void destroy();
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

  const service_settings settings_;
  std::optional<asio::io_context> context_;
  wheel_timer_service& wheel_;
  std::optional<virtual_time> time_;
  std::array<timer, 4> timers_;
  std::array<std::optional<asio::cancellation_signal>, 4> signals_;
  std::optional<pending_waits> waits_;
  int posted_ = 0;        ///< functions, and not called yet
  int depth_ = 0;         ///< of the context's functions that are running
  bool calling_ = false;  ///< a function that must not call handlers
  bool settled_ = true;   ///< nothing is due or ready
  std::string fault_;
};

}  // namespace model
