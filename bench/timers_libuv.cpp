// Event-loop timers: libuv's uv_timer_t (a binary heap; whole milliseconds, counted from a clock
// that is read once per turn, so some fire early). work_*.hpp describe the workloads, contender.hpp
// the rules; compared with timers_steady and timers_wheel.
#include <uv.h>

#include "workloads.hpp"

namespace {

using namespace bench;

struct cell {
  uv_timer_t timer;
  time_point deadline;
};

template <class Work>
class uv_timers : public c_library_timers<uv_timers<Work>, cell, Work> {
  using base = c_library_timers<uv_timers<Work>, cell, Work>;

public:
  uv_timers(const options& o, Work& work) : base{o.n, work}
  {
    ::uv_loop_init(&loop_);
    for (auto& c : this->cells()) {
      ::uv_timer_init(&loop_, &c.timer);
      c.timer.data = this;
    }
  }

  void arm(cell& c, nanoseconds delay)
  {
    const auto ms = std::chrono::ceil<milliseconds>(std::max(delay, nanoseconds{0}));
    ::uv_timer_start(&c.timer, &uv_timers::on_timer, static_cast<std::uint64_t>(ms.count()), 0);
  }
  void disarm(cell& c) { ::uv_timer_stop(&c.timer); }

  void run_once() { ::uv_run(&loop_, UV_RUN_NOWAIT); }
  void run() { ::uv_run(&loop_, UV_RUN_DEFAULT); }
  void leave() { ::uv_stop(&loop_); }

private:
  static void on_timer(uv_timer_t* timer)
  {
    static_cast<uv_timers*>(timer->data)->fire(*reinterpret_cast<cell*>(timer));
  }

  uv_loop_t loop_{};
};

struct libuv : contender_base {
  static constexpr auto name = "libuv";
  template <class Work>
  using timers = uv_timers<Work>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<libuv>(), {{"libuv", ::uv_version_string()}});
}
