// What a contender is.
//
// A contender is a struct with a name, what it can do, and a template timers<Work>, which owns one
// event loop and n timers and tells its workload when a wait is over:
//
//   timers(const options&, Work&)
//   start_after(i, delay)     start a wait on timer i, in the library's own relative way
//   start_at(i, deadline, now)   the same for a deadline; libraries without one take deadline - now
//   restart_after(i, delay)   cancel the wait on timer i, have its aborted handler run, start again
//   run_turns(f)              run the loop; calls f(chain) once per turn while it says again
//   stop()                    makes run_turns return
//   work.completed(i, deadline, aborted)   the contender calls this once per wait, with the
//   deadline
//                             that start_at got
//
// A turn does --per-turn steps, as a server does when one read brings several requests. Handlers of
// cancelled waits run between two turns.
//
// libuv, libevent and libev have no handler for a cancelled wait. Their adapters make the call
// themselves, from within the step, and so save the trip through the loop's queue that Asio's
// contenders pay for.
#pragma once

#include <cstddef>
#include <vector>

#include "measure.hpp"

namespace bench {

enum class turn {
  again,  // call me in the next turn of the loop, too
  rest,   // run the loop without me
  stop,   // leave the loop
};

// What most contenders can do. One that cannot says so.
struct contender_base {
  static constexpr bool cancels = true;        // has restart_after
  static constexpr bool any_delay = true;      // its waits may have different delays
  static constexpr bool expires = true;        // its waits expire if they are not cancelled
  static constexpr bool many_threads = false;  // run_turns(f, chains): as many threads run the loop
};

// What the adapters of the C libraries share. Derived offers arm(cell, delay), disarm(cell),
// run_once() and run().
template <class Derived, class Cell, class Work>
class c_library_timers {
public:
  void start_after(std::size_t i, nanoseconds delay) { self().arm(cells_[i], delay); }

  void start_at(std::size_t i, time_point deadline, time_point now)
  {
    cells_[i].deadline = deadline;
    self().arm(cells_[i], deadline - now);
  }

  void restart_after(std::size_t i, nanoseconds delay)
  {
    self().disarm(cells_[i]);
    work_.completed(i, cells_[i].deadline, true);
    self().arm(cells_[i], delay);
  }

  // Turns the loop by hand while the workload has turns to do, then lets it run.
  template <class Turn>
  void run_turns(Turn next_turn)
  {
    for (;;) {
      const turn wish = next_turn(0u);
      if (wish == turn::stop) return;
      if (wish == turn::rest) break;
      self().run_once();
      if (stopped_) return;
    }
    self().run();
  }

  void stop()
  {
    stopped_ = true;
    self().leave();
  }

protected:
  c_library_timers(std::size_t n, Work& work) : work_{work}, cells_(n) {}

  void fire(Cell& cell)
  {
    work_.completed(static_cast<std::size_t>(&cell - cells_.data()), cell.deadline, false);
  }

  std::vector<Cell>& cells() { return cells_; }

private:
  Derived& self() { return static_cast<Derived&>(*this); }

  Work& work_;
  std::vector<Cell> cells_;
  bool stopped_ = false;
};

}  // namespace bench
