// Event-loop timers: libev's ev_timer (a 4-ary heap with the times beside the pointers; it reads
// the clock once per turn; no lock). work_*.hpp describe the workloads, contender.hpp the rules;
// compared with timers_steady and timers_wheel.
#include <ev.h>

#include "workloads.hpp"

namespace {

using namespace bench;

struct cell {
  ev_timer timer;
  time_point deadline;
};

template <class Work>
class ev_timers : public c_library_timers<ev_timers<Work>, cell, Work> {
  using base = c_library_timers<ev_timers<Work>, cell, Work>;

public:
  ev_timers(const options& o, Work& work) : base{o.n, work}, loop_{::ev_loop_new(EVFLAG_AUTO)}
  {
    for (auto& c : this->cells()) {
      ev_init(&c.timer, &ev_timers::on_timer);
      c.timer.data = this;
    }
  }

  void arm(cell& c, nanoseconds delay)
  {
    ev_timer_set(&c.timer, std::chrono::duration<double>(delay).count(), 0.);
    ::ev_timer_start(loop_, &c.timer);
  }
  void disarm(cell& c) { ::ev_timer_stop(loop_, &c.timer); }

  void run_once() { ::ev_run(loop_, EVRUN_NOWAIT); }
  void run() { ::ev_run(loop_, 0); }
  void leave() { ::ev_break(loop_, EVBREAK_ALL); }

private:
  static void on_timer(struct ev_loop*, ev_timer* timer, int)
  {
    static_cast<ev_timers*>(timer->data)->fire(*reinterpret_cast<cell*>(timer));
  }

  struct ev_loop* loop_;
};

struct libev : contender_base {
  static constexpr auto name = "libev";
  template <class Work>
  using timers = ev_timers<Work>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<libev>(),
                    {{"libev", fmt::format("{}.{}", ::ev_version_major(), ::ev_version_minor())}});
}
