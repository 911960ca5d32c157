// Workloads in which waits expire: expire, shards, overdue, burst, stall, heartbeat, rearm.
//
//   expire     n deadlines uniform over one second, the loop otherwise idle: CPU ns per wait,
//              lateness
//   shards     like expire, but --shards threads have started the waits, so that each shard of the
//              wheel has its share
//   overdue    the same deadlines, but the loop is stuck in one handler until all have passed: CPU
//              ns per wait
//   burst      all n waits have the same deadline: CPU ns per wait, lateness
//   stall      like expire; a probe that runs once per turn of the loop records its longest wait
//   heartbeat  n timers of one second, each started again by its own handler: CPU ns per fire,
//              lateness
//   rearm      like heartbeat, each time with another delay of 1 ms to 1 s
//
// Each handler reads the clock and notes how late it is. Every figure includes that, the same for
// all (steady_clock_now in units_benchmark). A wait that completes before its deadline counts as
// "early".
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

#include "command_line.hpp"
#include "contender.hpp"
#include "measure.hpp"

namespace bench {

// All waits start before the first deadline. This is the time from the first start to that
// deadline.
inline nanoseconds time_to_start(std::size_t n)
{
  return milliseconds{300} + n * nanoseconds{3000};
}

inline void add_lateness(metrics& m, lateness& late)
{
  m.emplace_back("late_p50_us", late.percentile_us(50));
  m.emplace_back("late_p99_us", late.percentile_us(99));
  m.emplace_back("late_max_us", late.percentile_us(100));
  m.emplace_back("early", static_cast<double>(late.early()));
}

enum class expiry { spread, by_threads, overdue, burst, probed };

template <class Contender, expiry Kind>
class expire_work {
public:
  explicit expire_work(const options& o)
    : n_{o.n},
      per_turn_{o.per_turn},
      threads_{std::max<std::size_t>(o.shards, 1)},
      seed_{o.seed},
      random_{o.seed},
      late_{o.n},
      timers_{o, *this}
  {}

  metrics run()
  {
    first_ = steady_clock::now() + time_to_start(n_);
    timers_.run_turns([this](unsigned) { return next_turn(); });
    if (completed_ != n_) throw std::runtime_error("not every wait completed");
    metrics m;
    if (Kind == expiry::probed) {
      m.emplace_back("stall_us", micros(longest_));
      m.emplace_back("stall_wall_us", micros(longest_wall_));
    }
    m.emplace_back("cpu_ns", ns_per(cpu_, n_));
    add_lateness(m, late_);
    return m;
  }

  void completed(std::size_t, time_point deadline, bool)
  {
    late_.note(steady_clock::now(), deadline);
    if (++completed_ < n_) return;
    cpu_ = process_cpu() - cpu_;
    timers_.stop();
  }

private:
  static constexpr nanoseconds spread =
    Kind == expiry::burst ? nanoseconds{1000} : nanoseconds{seconds{1}};

  turn next_turn()
  {
    const auto now = steady_clock::now();
    if (started_ == n_) return probe(now);
    if (Kind == expiry::by_threads) return start_by_threads(now);
    const auto last = std::min(n_, started_ + per_turn_);
    for (; started_ < last; ++started_)
      timers_.start_at(started_, first_ + random_.between(nanoseconds{0}, spread), now);
    return started_ < n_ ? turn::again : all_started();
  }

  turn start_by_threads(time_point now)
  {
    std::vector<std::thread> starters;
    for (std::size_t t = 0; t < threads_; ++t) {
      starters.emplace_back([this, now, t] {
        random_numbers random{seed_ + t};
        for (std::size_t i = t; i < n_; i += threads_)
          timers_.start_at(i, first_ + random.between(nanoseconds{0}, spread), now);
      });
    }
    for (auto& each : starters) each.join();
    started_ = n_;
    return all_started();
  }

  turn all_started()
  {
    if (steady_clock::now() > first_)
      throw std::runtime_error("starting the waits took too long: a busy machine?");
    if (Kind == expiry::overdue) std::this_thread::sleep_until(first_ + spread + milliseconds{5});
    last_probe_ = thread_cpu();
    last_probe_wall_ = steady_clock::now();
    cpu_ = process_cpu();
    return Kind == expiry::probed ? turn::again : turn::rest;
  }

  turn probe(time_point now)
  {
    const auto cpu = thread_cpu();
    longest_ = std::max(longest_, cpu - last_probe_);
    longest_wall_ = std::max(longest_wall_, now - last_probe_wall_);
    last_probe_ = cpu;
    last_probe_wall_ = now;
    return turn::again;
  }

  std::size_t n_, per_turn_, threads_, started_ = 0, completed_ = 0;
  std::uint64_t seed_;
  random_numbers random_;
  lateness late_;
  time_point first_, last_probe_wall_;
  nanoseconds cpu_{}, last_probe_{}, longest_{}, longest_wall_{};
  typename Contender::template timers<expire_work> timers_;
};

enum class period { second, random };

template <class Contender, period Period>
class repeat_work {
public:
  explicit repeat_work(const options& o)
    : n_{o.n},
      per_turn_{o.per_turn},
      random_{o.seed},
      length_{static_cast<std::int64_t>(o.measure_seconds * 1e9)},
      late_{o.n * (2 + static_cast<std::size_t>(o.measure_seconds)) * 2},
      timers_{o, *this}
  {}

  metrics run()
  {
    first_ = steady_clock::now() + time_to_start(n_);
    begin_ = first_ + seconds{1};
    timers_.run_turns([this](unsigned) { return next_turn(); });
    metrics m{
      {"cpu_ns", ns_per(cpu_, fires_)},
      {"fires_per_s", static_cast<double>(fires_) * 1e9 / static_cast<double>(took_.count())}};
    add_lateness(m, late_);
    return m;
  }

  // The first second warms up. The next deadline counts from now, as with expires_after().
  void completed(std::size_t i, time_point deadline, bool)
  {
    const auto now = steady_clock::now();
    if (now >= begin_) count(now, deadline);
    timers_.start_at(i, now + delay(), now);
  }

private:
  nanoseconds delay()
  {
    if constexpr (Period == period::second)
      return seconds{1};
    else
      return random_.between(milliseconds{1}, seconds{1});
  }

  void count(time_point now, time_point deadline)
  {
    if (!measuring_) {
      measuring_ = true;
      begin_ = now;
      cpu_ = process_cpu();
    }
    if (now - begin_ < length_) {
      ++fires_;
      late_.note(now, deadline);
    } else if (took_ == nanoseconds{}) {
      took_ = now - begin_;
      cpu_ = process_cpu() - cpu_;
      timers_.stop();
    }
  }

  turn next_turn()
  {
    const auto now = steady_clock::now();
    const auto last = std::min(n_, started_ + per_turn_);
    for (; started_ < last; ++started_)
      timers_.start_at(started_, first_ + random_.between(nanoseconds{0}, seconds{1}), now);
    if (started_ < n_) return turn::again;
    if (steady_clock::now() > first_)
      throw std::runtime_error("starting the waits took too long: a busy machine?");
    return turn::rest;
  }

  std::size_t n_, per_turn_, started_ = 0;
  random_numbers random_;
  nanoseconds length_;
  lateness late_;
  std::uint64_t fires_ = 0;
  bool measuring_ = false;
  time_point first_, begin_;
  nanoseconds cpu_{}, took_{};
  typename Contender::template timers<repeat_work> timers_;
};

}  // namespace bench
