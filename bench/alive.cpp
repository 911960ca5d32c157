// A sign of life of one of n connections, each of which must be used within 60 s: this library's
// watchdog, and the floors.
//   watchdog   wheel_watchdog: touch()
//   clock      only reads the clock that --clock names
//   store      the same, and stores the time in an object as large as a watchdog
// One workload, touch: the cost of noting that a random connection was used, which is mostly a
// cache miss. cold_ns: CPU ns, with the choice.
#include <time.h>
#include <asio_wheel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "contender.hpp"

namespace {

using namespace bench;

// Connections(const options&, asio::io_context&) prepares n of them; use(i) notes a sign of life.
template <class Connections>
class touch_work : public asio_loop {
public:
  explicit touch_work(const options& o) : options_{o}, random_{o.seed}, connections_{o, context()}
  {}

  metrics run()
  {
    run_turns([this](unsigned) { return next_turn(); });
    return {{"cold_ns", ns_per(cpu_, done_)}};
  }

private:
  turn next_turn()
  {
    if (done_ == 0) cpu_ = thread_cpu();
    for (std::size_t step = 0; step < options_.per_turn; ++step)
      connections_.use(static_cast<std::size_t>(random_.below(options_.n)));
    done_ += options_.per_turn;
    if (done_ < options_.steps) return turn::again;
    cpu_ = thread_cpu() - cpu_;
    return turn::stop;
  }

  const options options_;
  random_numbers random_;
  std::uint64_t done_ = 0;
  nanoseconds cpu_{};
  Connections connections_;
};

class watchdogs {
public:
  watchdogs(const options& o, asio::io_context& context)
  {
    install_wheel(context, o);
    dogs_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i)
      dogs_.emplace_back(context, seconds{60}).async_expired([](const error_code&) {});
  }

  void use(std::size_t i) { dogs_[i].touch(); }

private:
  std::vector<asio_wheel::wheel_watchdog> dogs_;
};

class clock_reads {
public:
  clock_reads(const options& o, asio::io_context&)
    : id_{o.clock == "coarse" ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC}
  {}

  void use(std::size_t) { read_ = now(); }

protected:
  nanoseconds::rep now() const { return cpu_clock(id_).count(); }

private:
  clockid_t id_;
  volatile nanoseconds::rep read_ = 0;
};

class stores : public clock_reads {
public:
  stores(const options& o, asio::io_context& context) : clock_reads{o, context}, connections_(o.n)
  {}

  void use(std::size_t i) { connections_[i].used.store(now(), std::memory_order_relaxed); }

private:
  struct connection {
    std::atomic<nanoseconds::rep> used;
    std::array<char, sizeof(asio_wheel::wheel_watchdog) - sizeof used> rest;
  };

  std::vector<connection> connections_;
};

template <class Connections>
entry contender(const char* name)
{
  return {name, {{"touch", run_work<touch_work<Connections>>}}};
}

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv,
                    {contender<watchdogs>("watchdog"), contender<clock_reads>("clock"),
                     contender<stores>("store")});
}
