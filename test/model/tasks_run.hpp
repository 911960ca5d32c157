// Plays a script in virtual time on tasks by key, heartbeats and an interval of one wheel, and on a
// model of them: when each is to come next.
#pragma once

#include <array>
#include <asio_wheel/heartbeat.hpp>
#include <asio_wheel/keyed_scheduler.hpp>
#include <asio_wheel/wheel_interval.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/pending_waits.hpp"
#include "model/script.hpp"
#include "support/virtual_wheel.hpp"

namespace model {

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

class tasks_run : support::wheel_in_virtual_time {
public:
  /// The settings are apart, so that one of them does not decide another.
  tasks_run(operands of_wheel, operands settings);

  /// Says what is wrong, as a player does.
  [[nodiscard]] std::string play(script_view words);

private:
  struct task {
    int number = 0;
    time_point turn{};
    time_point set{};           ///< when the turn was
    duration period{};          ///< zero: runs once
    std::uint64_t times = 1;    ///< runs to come; of `many`, for ever
    bool running = false;       ///< and will run again
    bool moved = false;         ///< while it was running
    bool is_cancelled = false;  ///< by cancel_all(): no longer live, and goes when handlers run
    bool is_refused = false;    ///< its wait was: it goes when handlers run
    std::uint64_t does = 0;     ///< what its function does
  };

  struct beat {
    std::optional<heartbeat> object;
    duration interval{};
    int max_missed = 0;
    time_point sent{}, received{};
    time_point reported = time_point::min();

    int pings = 0;  ///< unanswered

    [[nodiscard]] time_point deadline() const;
  };

  /// A pending async_next or async_tick.
  struct operation {
    int number = 0;
    beat* of = nullptr;  ///< null: of the interval
    time_point started{};
    int began = 0;  ///< of the interval: how many ticks had been taken
    bool is_cancelled = false;
    bool is_refused = false;
    std::uint64_t does = 0;
  };

  /// The function of every task.
  struct task_function {
    tasks_run* run;
    int key;
    std::shared_ptr<task> t;
    std::shared_ptr<int> life;
    void operator()() { run->run(key, t); }
  };

  /// The handler of every operation.
  struct recorder {
    tasks_run* run;
    std::shared_ptr<operation> op;
    std::shared_ptr<int> life;
    template <class Value>
    void operator()(error_code ec, Value value)
    {
      run->complete(op, ec, value);
    }
  };

  static constexpr std::uint64_t many = 7;

  void perform(operands& o);
  void act(operands& o);
  bool act_on_something(operands& o);
  void perform_inside(std::uint64_t word);

  // Tasks: tasks_run_by_key.ipp.

  void run_after(operands& o);
  void run_every(operands& o);
  [[nodiscard]] std::shared_ptr<task> make_task(operands& o, duration delay);
  void scheduled(int key, const std::shared_ptr<task>& t, bool taken);
  void run(int key, const std::shared_ptr<task>& t);
  void ended(task& t);
  [[nodiscard]] time_point next_turn(const task& t) const;
  void reschedule(operands& o);
  void cancel_task(operands& o);
  [[nodiscard]] static bool is_live(const std::shared_ptr<task>& t);
  [[nodiscard]] bool may_be_gone(const std::shared_ptr<task>& t) const;
  void clear();
  [[nodiscard]] static int take_key(operands& o) { return static_cast<int>(o.take(2)); }
  [[nodiscard]] std::shared_ptr<task>& task_of(int key)
  {
    return tasks_[static_cast<std::size_t>(key)];
  }

  // Operations of both kinds: tasks_run_operations.ipp.

  [[nodiscard]] std::shared_ptr<operation> begin(beat* of, operands& o);
  template <class Value>
  void complete(const std::shared_ptr<operation>& op, error_code ec, Value value);
  [[nodiscard]] bool is_expected(const operation& op, error_code ec) const;
  [[nodiscard]] bool has_enough_operations() const { return operations_.size() > 8; }

  // Heartbeats: tasks_run_heartbeats.ipp.

  void make(beat& b, operands& o);
  [[nodiscard]] beat& pick_beat(operands& o) { return beats_[o.take(1)]; }
  [[nodiscard]] int number_of(const beat& b) const { return static_cast<int>(&b - beats_.data()); }
  void start_beat(operands& o);
  void happened(const operation& op, heartbeat_event event);
  void say_sent(operands& o);
  void say_received(operands& o);
  void cancel_beat(operands& o);
  void move_beat(operands& o);
  std::size_t cancelled_of(const beat& b);

  // The interval: tasks_run_interval.ipp.

  void make_interval(operands& o);
  void start_tick(operands& o);
  void happened(const operation& op, time_point tick);
  void reset_interval();
  void cancel_interval();

  // All of them, and time.

  void cancel_all();
  void run_ready();
  void settle();
  void advance(operands& o);
  template <class Function>
  void until_nothing_is_thrown(Function f);
  void expect_nothing_overdue();
  void compare();
  void expect_due(time_point deadline, time_point set, time_point started, const char* what);

  [[nodiscard]] time_point first_ahead(time_point t, duration period) const;
  [[nodiscard]] time_point ceil(time_point t) const;
  [[nodiscard]] const wheel_options& options() const { return wheel.options(); }
  [[nodiscard]] duration take_delay(operands& o) const;
  [[nodiscard]] duration take_period(operands& o) const;
  [[nodiscard]] bool is_full() const;

  void expect(bool ok, const char* what)
  {
    if (!ok) report(what);
  }
  void report(const std::string& fault)
  {
    if (fault_.empty()) fault_ = fault;
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

}  // namespace model
