// The workloads of event-loop timers: those of work_churn.hpp, and those in which waits expire or
// do nothing but wait.
//
//   expire     n deadlines uniform over one second, the loop otherwise idle: CPU ns per wait, and
//              how late
//   shards     like expire, but --shards threads have started the waits, so that each shard of the
//              wheel has its share
//   rearm      n timers, each started again by its own handler with another delay of 1 ms to 1 s:
//              CPU ns per fire, and how late
//   memory     resident bytes per pending wait, its timer object and 24-byte handler included
//
// Where waits expire each handler reads the clock and notes how late it is, which each figure
// includes. A wait that completes before its deadline counts as "early".
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "command_line.hpp"
#include "contender.hpp"
#include "measure.hpp"
#include "work_churn.hpp"

namespace bench {

// All waits start before the first deadline. This is the time from the first start to that
// deadline.
inline nanoseconds time_to_start(std::size_t n)
{
  return milliseconds{300} + n * nanoseconds{3000};
}

inline void check_time_to_start(time_point first)
{
  if (steady_clock::now() > first)
    throw std::runtime_error("starting the waits took too long: a busy machine?");
}

inline void add_lateness(metrics& m, lateness& late)
{
  m.emplace_back("late_p50_us", late.percentile_us(50));
  m.emplace_back("late_p99_us", late.percentile_us(99));
  m.emplace_back("late_max_us", late.percentile_us(100));
  m.emplace_back("early", static_cast<double>(late.early()));
}

template <class Contender, bool ByThreads>
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
    metrics m{{"cpu_ns", ns_per(cpu_, n_)}};
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
  turn next_turn()
  {
    const auto now = steady_clock::now();
    if (ByThreads) return start_by_threads(now);
    const auto last = std::min(n_, started_ + per_turn_);
    for (; started_ < last; ++started_) timers_.start_at(started_, deadline(random_), now);
    return started_ < n_ ? turn::again : all_started();
  }

  time_point deadline(random_numbers& random) const
  {
    return first_ + random.between(nanoseconds{0}, seconds{1});
  }

  turn start_by_threads(time_point now)
  {
    std::vector<std::thread> starters;
    for (std::size_t t = 0; t < threads_; ++t) {
      starters.emplace_back([this, now, t] {
        random_numbers random{seed_ + t};
        for (std::size_t i = t; i < n_; i += threads_) timers_.start_at(i, deadline(random), now);
      });
    }
    for (auto& each : starters) each.join();
    return all_started();
  }

  turn all_started()
  {
    check_time_to_start(first_);
    cpu_ = process_cpu();
    return turn::rest;
  }

  std::size_t n_, per_turn_, threads_, started_ = 0, completed_ = 0;
  std::uint64_t seed_;
  random_numbers random_;
  lateness late_;
  time_point first_;
  nanoseconds cpu_{};
  typename Contender::template timers<expire_work> timers_;
};

template <class Contender>
class rearm_work {
public:
  explicit rearm_work(const options& o)
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
  nanoseconds delay() { return random_.between(milliseconds{1}, seconds{1}); }

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
    check_time_to_start(first_);
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
  typename Contender::template timers<rearm_work> timers_;
};

template <class Contender>
class memory_work {
public:
  explicit memory_work(const options& o) : options_{o}, random_{o.seed} {}

  metrics run()
  {
    const auto before = resident_bytes();
    timers_.emplace(options_, *this);
    timers_->run_turns([this](unsigned) { return next_turn(); });
    const auto grown = static_cast<double>(resident_bytes() - before);
    return {{"bytes", grown / static_cast<double>(options_.n)}};
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
  std::optional<timers> timers_;
};

// The workloads this contender can do.
template <class Contender>
workload_table workloads_of()
{
  workload_table t{{"start", run_work<start_work<Contender>>},
                   {"memory", run_work<memory_work<Contender>>}};
  if constexpr (Contender::cancels) t.emplace_back("churn", run_work<churn_work<Contender>>);
  if constexpr (Contender::expires) {
    t.emplace_back("expire", run_work<expire_work<Contender, false>>);
    if constexpr (Contender::many_threads)
      t.emplace_back("shards", run_work<expire_work<Contender, true>>);
    t.emplace_back("rearm", run_work<rearm_work<Contender>>);
  }
  if constexpr (Contender::cancels && Contender::many_threads) {
    t.emplace_back("parallel1", run_work<parallel_work<Contender, 1>>);
    t.emplace_back("parallel2", run_work<parallel_work<Contender, 2>>);
  }
  return t;
}

template <class... Contenders>
std::vector<entry> contenders()
{
  return {entry{Contenders::name, workloads_of<Contenders>()}...};
}

}  // namespace bench
