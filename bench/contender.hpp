// What a contender is, and what those of Asio's interface share.
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
//                             deadline that start_at got
//
// A turn does --per-turn steps, as a server does when one read brings several requests. Handlers of
// cancelled waits run between two turns.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include "command_line.hpp"
#include "measure.hpp"

namespace bench {

namespace asio = boost::asio;
using boost::system::error_code;

enum class turn {
  again,  // call me in the next turn of the loop, too
  rest,   // run the loop without me
  stop,   // leave the loop
};

// What most contenders can do. One that cannot says so.
struct contender_base {
  static constexpr bool cancels = true;        // has restart_after
  static constexpr bool expires = true;        // its waits expire if they are not cancelled
  static constexpr bool many_threads = false;  // run_turns(f, chains): as many threads run the loop
};

// An io_context and the turns of a workload, each turn one posted handler.
class asio_loop {
public:
  asio::io_context& context() { return context_; }
  void stop() { context_.stop(); }

  // Every chain is a handler that posts itself again; the loop's threads take them as they come.
  template <class Turn>
  void run_turns(Turn next_turn, unsigned chains = 1)
  {
    for (unsigned chain = 0; chain < chains; ++chain)
      asio::post(context_, turn_handler<Turn>{this, &next_turn, chain});
    std::vector<std::thread> others;
    for (unsigned thread = 1; thread < chains; ++thread) {
      others.emplace_back([this, thread] {
        run_on_processor(thread);
        context_.run();
      });
    }
    if (chains > 1) run_on_processor(0);
    context_.run();
    for (auto& thread : others) thread.join();
  }

private:
  template <class Turn>
  struct turn_handler {
    asio_loop* loop;
    Turn* next_turn;
    unsigned chain;

    void operator()() const
    {
      switch ((*next_turn)(chain)) {
        case turn::again: asio::post(loop->context_, *this); break;
        case turn::rest: break;
        case turn::stop: loop->stop(); break;
      }
    }
  };

  asio::io_context context_;
};

// Prepares nothing: a steady_timer finds its queue by itself.
struct no_service {
  static void install(asio::io_context&, const options&) {}
};

template <class Timer, class Service, class Work>
class callback_timers : public asio_loop {
public:
  callback_timers(const options& o, Work& work) : work_{work}
  {
    Service::install(context(), o);
    timers_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i) timers_.emplace_back(context().get_executor());
  }

  void start_after(std::size_t i, nanoseconds delay)
  {
    timers_[i].expires_after(delay);
    wait(i, {});
  }

  void start_at(std::size_t i, time_point deadline, time_point)
  {
    timers_[i].expires_at(deadline);
    wait(i, deadline);
  }

  // expires_after() cancels the pending wait; its handler is queued and runs when the loop comes to
  // it.
  void restart_after(std::size_t i, nanoseconds delay) { start_after(i, delay); }

private:
  struct wait_handler {
    callback_timers* owner;
    std::size_t index;
    time_point deadline;

    void operator()(const error_code& ec) const
    {
      owner->work_.completed(index, deadline, ec == asio::error::operation_aborted);
    }
  };
  static_assert(sizeof(wait_handler) == 24, "the memory workload says so");

  void wait(std::size_t i, time_point deadline)
  {
    timers_[i].async_wait(wait_handler{this, i, deadline});
  }

  Work& work_;
  std::vector<Timer> timers_;
};

// A coroutine for each timer, by use_awaitable.
template <class Timer, class Service, class Work>
class coroutine_timers : public asio_loop {
public:
  coroutine_timers(const options& o, Work& work) : work_{work}
  {
    Service::install(context(), o);
    connections_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i)
      connections_.push_back({Timer{context().get_executor()}, {}, {}, false, false});
  }

  void start_after(std::size_t i, nanoseconds delay) { arm(i, delay, std::nullopt); }
  void start_at(std::size_t i, time_point deadline, time_point) { arm(i, {}, deadline); }

  // The coroutine wakes with operation_aborted and waits again, for the new delay. A second restart
  // before that finds nothing to cancel, and churn, which counts aborted waits, does not count it.
  void restart_after(std::size_t i, nanoseconds delay)
  {
    arm(i, delay, std::nullopt);
    connections_[i].timer.cancel();
  }

private:
  struct connection {
    Timer timer;
    nanoseconds delay;
    std::optional<time_point> deadline;
    bool armed, running;
  };

  void arm(std::size_t i, nanoseconds delay, std::optional<time_point> deadline)
  {
    auto& c = connections_[i];
    c.delay = delay;
    c.deadline = deadline;
    c.armed = true;
    if (c.running) return;
    c.running = true;
    asio::co_spawn(context(), serve(i), asio::detached);
  }

  asio::awaitable<void> serve(std::size_t i)
  {
    auto& c = connections_[i];
    while (c.armed) {
      c.armed = false;
      const auto deadline = c.deadline;
      if (deadline)
        c.timer.expires_at(*deadline);
      else
        c.timer.expires_after(c.delay);
      const auto [ec] = co_await c.timer.async_wait(asio::as_tuple(asio::use_awaitable));
      work_.completed(i, deadline.value_or(time_point{}), ec == asio::error::operation_aborted);
    }
    c.running = false;
  }

  Work& work_;
  std::vector<connection> connections_;
};

}  // namespace bench
