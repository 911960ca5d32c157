// Workloads of connections that stay alive: touch, beats, refile.
//
//   touch    n connections of which each must be used within 60 s: CPU ns to note that a random one
//            was used, what it costs to choose it included (the contender "clock" reads the clock
//            and does nothing with it)
//   beats    n idle connections that are pinged once a second, each ping answered at once: CPU ns
//            per ping
//   refile   n connections, all used since the wheel filed their deadlines, which come in one and
//            the same millisecond: CPU ns for the wheel to file one anew
#pragma once

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "asio_timers.hpp"
#include "command_line.hpp"
#include "contender.hpp"
#include "measure.hpp"

namespace bench {

// Connections(const options&, asio::io_context&) prepares n of them; use(i) notes a sign of life.
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
    run_turns([this](unsigned) { return next_turn(); });
    return {{"cpu_ns", ns_per(cpu_, options_.steps)}};
  }

private:
  turn next_turn()
  {
    if (done_ == 0 && warm_++ < options_.n / options_.per_turn) {
      use_some();
      return turn::again;
    }
    if (done_ == 0) cpu_ = thread_cpu();
    use_some();
    done_ += options_.per_turn;
    if (done_ < options_.steps) return turn::again;
    cpu_ = thread_cpu() - cpu_;
    return turn::stop;
  }

  void use_some()
  {
    for (std::size_t step = 0; step < options_.per_turn; ++step)
      connections_.use(static_cast<std::size_t>(random_.below(options_.n)));
  }

  const options options_;
  random_numbers random_;
  std::size_t warm_ = 0;
  std::uint64_t done_ = 0;
  nanoseconds cpu_{};
  Connections connections_;
};

// Connections as above; start(i, f) calls f(aborted) when connection i was idle for a second.
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
  // The first second spreads the connections, the next belongs to the warm-up.
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
    stopped_ = true;  // some handlers may follow before the loop is left
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
