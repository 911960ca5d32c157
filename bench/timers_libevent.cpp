// Event-loop timers: libevent's timeout events.
//   libevent          a binary heap of timeouts
//   libevent_common   event_base_init_common_timeout: a queue for each delay in use
// Deadlines count from a clock that is read once per turn, so some fire early. work_*.hpp describe
// the workloads, contender.hpp the rules; compared with timers_steady and timers_wheel.
#include <event2/event.h>
#include <event2/event_struct.h>

#include "workloads.hpp"

namespace {

using namespace bench;

struct cell {
  event timer;
  time_point deadline;
};

inline timeval to_timeval(nanoseconds delay)
{
  const auto us =
    std::chrono::ceil<std::chrono::microseconds>(std::max(delay, nanoseconds{0})).count();
  return {static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
}

template <class Work, bool Common>
class event_timers : public c_library_timers<event_timers<Work, Common>, cell, Work> {
  using base = c_library_timers<event_timers<Work, Common>, cell, Work>;

public:
  event_timers(const options& o, Work& work) : base{o.n, work}, loop_{::event_base_new()}
  {
    for (auto& c : this->cells())
      ::event_assign(&c.timer, loop_, -1, 0, &event_timers::on_timer, &c);
    owner = this;
  }

  void arm(cell& c, nanoseconds delay)
  {
    timeval after = to_timeval(delay);
    if constexpr (Common) {
      if (!common_) common_ = ::event_base_init_common_timeout(loop_, &after);
      ::event_add(&c.timer, common_);
    } else {
      ::event_add(&c.timer, &after);
    }
  }
  void disarm(cell& c) { ::event_del(&c.timer); }

  void run_once() { ::event_base_loop(loop_, EVLOOP_ONCE | EVLOOP_NONBLOCK); }
  void run() { ::event_base_dispatch(loop_); }
  void leave() { ::event_base_loopbreak(loop_); }

private:
  static void on_timer(evutil_socket_t, short, void* c) { owner->fire(*static_cast<cell*>(c)); }

  static inline event_timers* owner = nullptr;
  event_base* loop_;
  const timeval* common_ = nullptr;
};

struct libevent : contender_base {
  static constexpr auto name = "libevent";
  template <class Work>
  using timers = event_timers<Work, false>;
};

struct libevent_common : contender_base {
  static constexpr auto name = "libevent_common";
  static constexpr bool any_delay = false;
  template <class Work>
  using timers = event_timers<Work, true>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<libevent, libevent_common>(),
                    {{"libevent", ::event_get_version()}});
}
