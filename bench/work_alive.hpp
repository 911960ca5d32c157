// Workloads of connections that stay alive: touch, beats, refile.
//
//   touch    n connections, each of which must be used within 60 s: the cost of noting that a
//   random
//            one was used. warm_ns: its memory was read just before, as a server does that has read
//            a message for it; the median of batches, without the random choice. cold_ns: CPU ns
//            without such a read, with the choice: mostly a cache miss. (The contender "clock"
//            reads the clock and does nothing with it.)
//   beats    n idle connections, each pinged once a second and answered at once: CPU ns per ping
//   refile   n connections, all used since the wheel filed their deadlines, which all come in the
//            same millisecond: CPU ns for the wheel to file one anew
#pragma once

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "asio_timers.hpp"
#include "command_line.hpp"
#include "contender.hpp"
#include "measure.hpp"

namespace bench {

// Connections(const options&, asio::io_context&, timeout) prepares n of them; use(i) notes a sign
// of life, read(i) only touches the memory.
template <class Connections>
class touch_work : public asio_loop {
public:
  explicit touch_work(const options& o)
    : options_{o},
      random_{o.seed},
      connections_{o, context(), seconds{60}}
  {}

  metrics run()
  {
    for (std::size_t i = 0; i < options_.n; ++i) connections_.start(i, [](bool) {});
    batches_.reserve(options_.steps / options_.per_turn + 1);
    chosen_.resize(options_.per_turn);
    run_turns([this](unsigned) { return next_turn(); });
    const auto middle = batches_.begin() + static_cast<std::ptrdiff_t>(batches_.size() / 2);
    std::nth_element(batches_.begin(), middle, batches_.end());
    return {{"warm_ns", ns_per(*middle, options_.per_turn)},
            {"cold_ns", ns_per(cold_, options_.steps)}};
  }

private:
  // Measures cold first, which warms up as well.
  turn next_turn()
  {
    if (done_ == 0) cold_ = thread_cpu();
    if (done_ < options_.steps) {
      for (std::size_t step = 0; step < options_.per_turn; ++step) connections_.use(choose());
      done_ += options_.per_turn;
      if (done_ >= options_.steps) cold_ = thread_cpu() - cold_;
      return turn::again;
    }
    for (auto& i : chosen_) {
      i = choose();
      connections_.read(i);
    }
    const auto begin = steady_clock::now();
    for (const auto i : chosen_) connections_.use(i);
    batches_.push_back(steady_clock::now() - begin);
    return batches_.size() * options_.per_turn < options_.steps ? turn::again : turn::stop;
  }

  std::size_t choose() { return static_cast<std::size_t>(random_.below(options_.n)); }

  const options options_;
  random_numbers random_;
  std::uint64_t done_ = 0;
  nanoseconds cold_{};
  std::vector<nanoseconds> batches_;
  std::vector<std::size_t> chosen_;
  Connections connections_;
};

// Connections as above. start(i, f) calls f(aborted) when connection i was idle for a second.
template <class Connections>
class beats_work : public asio_loop {
public:
  explicit beats_work(const options& o) : options_{o}, connections_{o, context(), seconds{1}} {}

  metrics run()
  {
    first_ = steady_clock::now();
    begin_ = first_ + seconds{2};
    end_ = begin_ + nanoseconds{static_cast<std::int64_t>(options_.measure_seconds * 1e9)};
    run_turns([this](unsigned) { return next_turn(); });
    const double expected = options_.measure_seconds * static_cast<double>(options_.n);
    return {{"cpu_ns", ns_per(cpu_, counted_)},
            {"beats_of_expected", static_cast<double>(counted_) / expected}};
  }

private:
  // The first second spreads the connections, the next one warms up.
  turn next_turn()
  {
    const auto due = (steady_clock::now() - first_) * static_cast<std::int64_t>(options_.n);
    for (; started_ < options_.n; ++started_) {
      if (seconds{1} * static_cast<std::int64_t>(started_) > due) return turn::again;
      connections_.use(started_);
      beat(started_);
    }
    return turn::rest;
  }

  void beat(std::size_t i)
  {
    connections_.start(i, [this, i](bool aborted) {
      if (aborted) return;
      count();
      connections_.use(i);
      beat(i);
    });
  }

  void count()
  {
    const auto now = steady_clock::now();
    if (now < begin_ || stopped_) return;
    if (counted_++ == 0) cpu_ = process_cpu();
    if (now < end_) return;
    cpu_ = process_cpu() - cpu_;
    stopped_ = true;  // some handlers may still follow before the loop returns
    stop();
  }

  const options options_;
  std::size_t started_ = 0;
  time_point first_, begin_, end_;
  std::uint64_t counted_ = 0;
  bool stopped_ = false;
  nanoseconds cpu_{};
  Connections connections_;
};

template <class Connections>
metrics refile(const options& o)
{
  constexpr int rounds = 10;
  constexpr milliseconds timeout{200};
  asio::io_context& context = *new asio::io_context;
  auto& connections = *new Connections{o, context, timeout};
  for (std::size_t i = 0; i < o.n; ++i) {
    connections.start(i, [](bool) { throw std::runtime_error("a connection expired"); });
  }
  nanoseconds cpu{};
  for (int round = 0; round < rounds; ++round) {
    context.poll();
    std::this_thread::sleep_for(timeout);
    for (std::size_t i = 0; i < o.n; ++i) connections.use(i);
    const auto begin = thread_cpu();
    context.poll();
    cpu += thread_cpu() - begin;
  }
  return {{"cpu_ns", ns_per(cpu, rounds * o.n)}};
}

}  // namespace bench
