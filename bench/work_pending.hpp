// Workloads in which waits do nothing but wait: memory, idle.
//
//   memory    resident bytes per pending wait, including its timer object and its 24-byte handler;
//             what is kept of them when all have ended and the contender has released its memory,
//             if it can, and how long that takes
//   contexts  resident bytes of n loops with a wait each; before that, of a loop without any
//   idle      how often the loop's thread wakes up while every deadline is at least a minute away
#pragma once

#include <fmt/core.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "command_line.hpp"
#include "contender.hpp"
#include "measure.hpp"

namespace bench {

template <class Contender>
class memory_work {
public:
  explicit memory_work(const options& o) : options_{o}, random_{o.seed} {}

  metrics run()
  {
    const auto before = resident_bytes();
    timers_ = std::make_unique<timers>(options_, *this);
    timers_->run_turns([this](unsigned) { return next_turn(); });
    const auto grown = static_cast<double>(resident_bytes() - before);
    metrics m{{"bytes", grown / static_cast<double>(options_.n)}, {"megabytes", grown / 1e6}};
    if constexpr (requires(timers & t) { t.end_all(); }) {
      timers_->end_all();
      const auto kept = static_cast<double>(resident_bytes()) - static_cast<double>(before);
      m.push_back({"kept_megabytes", kept / 1e6});
    }
    return m;
  }

  void completed(std::size_t, time_point, bool) {}

private:
  using timers = typename Contender::template timers<memory_work>;

  turn next_turn()
  {
    const auto last = std::min(options_.n, started_ + options_.per_turn);
    for (; started_ < last; ++started_)
      timers_->start_after(started_, random_.between(seconds{60}, seconds{120}));
    return started_ < options_.n ? turn::again : turn::stop;
  }

  options options_;
  std::size_t started_ = 0;
  random_numbers random_;
  std::unique_ptr<timers> timers_;
};

template <class Contender>
class contexts_work {
public:
  explicit contexts_work(const options& o) : options_{o}, loops_(o.n) { options_.n = 1; }

  metrics run()
  {
    const auto before = resident_bytes();
    for (auto& loop : loops_) loop = std::make_unique<timers>(options_, *this);
    const auto unused = static_cast<double>(resident_bytes() - before);
    for (auto& loop : loops_) {
      loop->run_turns([&loop](unsigned) {
        loop->start_after(0, seconds{60});
        return turn::stop;
      });
    }
    const auto used = static_cast<double>(resident_bytes() - before);
    return {{"unused_kb", unused / 1024 / static_cast<double>(loops_.size())},
            {"megabytes", used / 1e6}};
  }

  void completed(std::size_t, time_point, bool) {}

private:
  using timers = typename Contender::template timers<contexts_work>;

  options options_;
  std::vector<std::unique_ptr<timers>> loops_;
};

// The process ends while its loop sleeps: a timer or a message to end it would be a wake-up, too.
template <class Contender>
class idle_work {
public:
  explicit idle_work(const options& o) : options_{o}, random_{o.seed}, timers_{o, *this} {}

  metrics run()
  {
    loop_thread_ = ::gettid();
    std::thread{[this] { watch(); }}.detach();
    timers_.run_turns([this](unsigned) { return next_turn(); });
    throw std::runtime_error("the loop ended although waits are pending");
  }

  void completed(std::size_t, time_point, bool) {}

private:
  turn next_turn()
  {
    const auto last = std::min(options_.n, started_ + options_.per_turn);
    for (; started_ < last; ++started_)
      timers_.start_after(started_, random_.between(seconds{60}, seconds{3600}));
    if (started_ < options_.n) return turn::again;
    resting_.test_and_set();
    resting_.notify_one();
    return turn::rest;
  }

  // The first time it goes to sleep is a switch as well, but not a wake-up.
  void watch()
  {
    resting_.wait(false);
    const auto switches = voluntary_switches(loop_thread_);
    const auto cpu = process_cpu();
    std::this_thread::sleep_for(std::chrono::duration<double>{options_.measure_seconds});
    const auto slept = voluntary_switches(loop_thread_) - switches;
    print_result(options_, {{"wakeups", static_cast<double>(slept ? slept - 1 : 0)},
                            {"cpu_us", micros(process_cpu() - cpu)}});
    std::fflush(stdout);
    std::_Exit(0);
  }

  options options_;
  std::size_t started_ = 0;
  random_numbers random_;
  pid_t loop_thread_ = 0;
  std::atomic_flag resting_;
  typename Contender::template timers<idle_work> timers_;
};

}  // namespace bench
