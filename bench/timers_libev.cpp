// Event-loop timers: libev's ev_timer (a 4-ary heap with the times beside the pointers; it reads
// the clock once per turn; no lock). It has no handler for a cancelled wait, so this adapter makes
// the call itself, from within the step: that saves the trip through the loop's queue which Asio's
// contenders pay for. Compared with timers_steady and timers_wheel.
#include <ev.h>

#include "workloads.hpp"

namespace {

using namespace bench;

template <class Work>
class ev_timers {
public:
  ev_timers(const options& o, Work& work)
    : work_{work},
      cells_(o.n),
      loop_{::ev_loop_new(EVFLAG_AUTO)}
  {
    for (auto& c : cells_) {
      ev_init(&c.timer, &ev_timers::on_timer);
      c.timer.data = this;
    }
  }

  void start_after(std::size_t i, nanoseconds delay)
  {
    ev_timer* const timer = &cells_[i].timer;
    ev_timer_set(timer, std::chrono::duration<double>(delay).count(), 0.);
    ::ev_timer_start(loop_, timer);
  }
  void start_at(std::size_t i, time_point deadline, time_point now)
  {
    cells_[i].deadline = deadline;
    start_after(i, deadline - now);
  }
  void restart_after(std::size_t i, nanoseconds delay)
  {
    ::ev_timer_stop(loop_, &cells_[i].timer);
    work_.completed(i, cells_[i].deadline, true);
    start_after(i, delay);
  }

  // Turns the loop by hand while the workload has turns to do, then lets it run.
  template <class Turn>
  void run_turns(Turn next_turn)
  {
    for (;;) {
      const turn wish = next_turn(0u);
      if (wish == turn::stop) return;
      if (wish == turn::rest) break;
      ::ev_run(loop_, EVRUN_NOWAIT);
      if (stopped_) return;
    }
    ::ev_run(loop_, 0);
  }
  void stop()
  {
    stopped_ = true;
    ::ev_break(loop_, EVBREAK_ALL);
  }

private:
  struct cell {
    ev_timer timer;
    time_point deadline;
  };

  static void on_timer(struct ev_loop*, ev_timer* timer, int)
  {
    auto& self = *static_cast<ev_timers*>(timer->data);
    const auto& c = *reinterpret_cast<cell*>(timer);
    self.work_.completed(static_cast<std::size_t>(&c - self.cells_.data()), c.deadline, false);
  }

  Work& work_;
  std::vector<cell> cells_;
  struct ev_loop* loop_;
  bool stopped_ = false;
};

struct libev : contender_base {
  static constexpr auto name = "libev";
  template <class Work>
  using timers = ev_timers<Work>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<libev>(), "libev",
                    fmt::format("{}.{}", ::ev_version_major(), ::ev_version_minor()));
}
