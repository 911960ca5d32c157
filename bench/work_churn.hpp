// Workloads in which waits are started and cancelled.
//
//   start      n waits of 5..65 s are started, and none expires: CPU ns per start
//   churn      the life of a request timeout. n waits of 1..60 s are outstanding; a step takes one
//              at random, cancels it (its aborted handler runs) and starts it again. A wait that
//              expires meanwhile starts again and does not count as a step. CPU ns per step, after
//              as many steps of warm-up as there are waits
//   parallel1, parallel2
//              churn by so many threads that run one io_context: million steps per second in all
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "command_line.hpp"
#include "contender.hpp"
#include "measure.hpp"

namespace bench {

template <class Contender>
class start_work {
public:
  explicit start_work(const options& o)
    : n_{o.n},
      per_turn_{o.per_turn},
      random_{o.seed},
      timers_{o, *this}
  {}

  metrics run()
  {
    const auto cpu = process_cpu();
    timers_.run_turns([this](unsigned) { return next_turn(); });
    return {{"cpu_ns", ns_per(process_cpu() - cpu, n_)}};
  }

  void completed(std::size_t, time_point, bool) {}

private:
  turn next_turn()
  {
    const auto last = std::min(n_, started_ + per_turn_);
    for (; started_ < last; ++started_)
      timers_.start_after(started_, random_.between(seconds{5}, seconds{65}));
    return started_ < n_ ? turn::again : turn::stop;
  }

  std::size_t n_, per_turn_, started_ = 0;
  random_numbers random_;
  typename Contender::template timers<start_work> timers_;
};

template <class Contender>
class churn_work {
public:
  explicit churn_work(const options& o)
    : n_{o.n},
      per_turn_{o.per_turn},
      warm_{o.n},
      steps_{o.steps},
      random_{o.seed},
      timers_{o, *this}
  {}

  metrics run()
  {
    timers_.run_turns([this](unsigned) { return next_turn(); });
    const auto counted = aborted_ - aborted_at_begin_;
    return {{"cpu_ns", ns_per(process_cpu() - cpu_, counted)},
            {"wall_ns", ns_per(steady_clock::now() - begin_, counted)},
            {"expired", static_cast<double>(expired_)}};
  }

  void completed(std::size_t i, time_point, bool aborted)
  {
    if (aborted) {
      ++aborted_;
      return;
    }
    ++expired_;
    timers_.start_after(i, delay());
  }

private:
  nanoseconds delay() { return random_.between(seconds{1}, seconds{60}); }

  turn next_turn()
  {
    if (started_ < n_) {
      const auto last = std::min(n_, started_ + per_turn_);
      for (; started_ < last; ++started_) timers_.start_after(started_, delay());
      return turn::again;
    }
    if (!measuring_ && aborted_ >= warm_) {
      measuring_ = true;
      aborted_at_begin_ = aborted_;
      cpu_ = process_cpu();
      begin_ = steady_clock::now();
    }
    if (measuring_ && aborted_ - aborted_at_begin_ >= steps_) return turn::stop;
    for (std::size_t step = 0; step < per_turn_; ++step) {
      const auto i = static_cast<std::size_t>(random_.below(n_));
      timers_.restart_after(i, delay());
    }
    return turn::again;
  }

  std::size_t n_, per_turn_, started_ = 0;
  std::uint64_t warm_, steps_, aborted_ = 0, aborted_at_begin_ = 0, expired_ = 0;
  bool measuring_ = false;
  nanoseconds cpu_{};
  time_point begin_;
  random_numbers random_;
  typename Contender::template timers<churn_work> timers_;
};

// Two threads must not use a steady_timer at once. So there are as many chains of handlers as
// threads, each chain owns its share of the timers, and any thread may run any chain, for all
// contenders. Delays are 60..120 s: no wait expires.
template <class Contender, unsigned Threads>
class parallel_work {
public:
  explicit parallel_work(const options& o)
    : share_{std::max<std::size_t>(o.n / Threads, 1)},
      per_turn_{o.per_turn},
      length_{static_cast<std::int64_t>(o.measure_seconds * 1e9)},
      timers_{o, *this}
  {
    for (unsigned c = 0; c < Threads; ++c) chains_[c].random = random_numbers{o.seed + c};
  }

  metrics run()
  {
    timers_.run_turns([this](unsigned c) { return next_turn(chains_[c], c * share_); }, Threads);
    std::uint64_t steps = 0;
    for (const auto& c : chains_) steps += c.counted;
    const double micros_in_all = micros(length_);
    return {{"msteps_per_s", static_cast<double>(steps) / micros_in_all},
            {"cpu_ns", ns_per(cpu_, steps)}};
  }

  void completed(std::size_t, time_point, bool aborted)
  {
    [[maybe_unused]] thread_local std::uint64_t seen = 0;  // a handler does something
    seen += aborted;
  }

private:
  struct alignas(64) chain {
    random_numbers random{0};
    std::size_t started = 0;
    std::uint64_t warmed = 0, counted = 0;
  };

  turn next_turn(chain& c, std::size_t first)
  {
    const auto delay = [&] { return c.random.between(seconds{60}, seconds{120}); };
    if (c.started < share_) {
      const auto last = std::min(share_, c.started + per_turn_);
      for (; c.started < last; ++c.started) timers_.start_after(first + c.started, delay());
      return turn::again;
    }
    for (std::size_t step = 0; step < per_turn_; ++step)
      timers_.restart_after(first + static_cast<std::size_t>(c.random.below(share_)), delay());
    return count(c);
  }

  // The last chain to finish its warm-up starts the clock. The first to see that time is up stops
  // the loop.
  turn count(chain& c)
  {
    const auto now = steady_clock::now();
    if (measuring_.load(std::memory_order_acquire)) {
      if (now < end_)
        c.counted += per_turn_;
      else
        return finish();
    } else if (c.warmed < share_) {
      c.warmed += per_turn_;
      if (c.warmed >= share_ && warm_chains_.fetch_add(1) + 1 == Threads) {
        end_ = now + length_;
        cpu_ = process_cpu();
        measuring_.store(true, std::memory_order_release);
      }
    }
    return turn::again;
  }

  turn finish()
  {
    if (!finished_.exchange(true)) cpu_ = process_cpu() - cpu_;
    return turn::stop;
  }

  std::size_t share_, per_turn_;
  nanoseconds length_;
  std::array<chain, Threads> chains_;
  std::atomic<unsigned> warm_chains_{0};
  std::atomic<bool> measuring_{false}, finished_{false};
  time_point end_;
  nanoseconds cpu_{};
  typename Contender::template timers<parallel_work> timers_;
};

}  // namespace bench
