// What the things that timers are made of cost on this machine, in nanoseconds (Google Benchmark):
// clock reads, a lock, an atomic addition, an allocation, a system call that arms a timer, a trip
// through Asio's queue. Read it beside the other results: no timer that reads the clock for each
// start can cost less than the clock.
//   units_benchmark [--benchmark_filter=REGEX]
#include <benchmark/benchmark.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "measure.hpp"

namespace {

void steady_clock_now(benchmark::State& state)
{
  for (auto _ : state) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}
BENCHMARK(steady_clock_now);

void coarse_clock(benchmark::State& state)
{
  timespec t{};
  for (auto _ : state) {
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    benchmark::DoNotOptimize(t);
  }
}
BENCHMARK(coarse_clock);

void mutex_pair(benchmark::State& state)
{
  std::mutex mutex;
  for (auto _ : state) std::lock_guard{mutex};
}
BENCHMARK(mutex_pair);

void atomic_add(benchmark::State& state)
{
  std::atomic<std::uint64_t> counter{0};
  for (auto _ : state) counter.fetch_add(1, std::memory_order_relaxed);
}
BENCHMARK(atomic_add);

std::atomic<std::uint64_t> shared_counter{0};
void atomic_add_contended(benchmark::State& state)
{
  for (auto _ : state) shared_counter.fetch_add(1, std::memory_order_relaxed);
}
BENCHMARK(atomic_add_contended)->Threads(2)->UseRealTime();

void allocate_and_free(benchmark::State& state)
{
  for (auto _ : state)
    benchmark::DoNotOptimize(std::make_unique<char[]>(static_cast<std::size_t>(state.range(0))));
}
BENCHMARK(allocate_and_free)->Arg(64)->Arg(128);

void timerfd_arm(benchmark::State& state)
{
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, 0);
  itimerspec far{};
  for (auto _ : state) {
    far.it_value.tv_sec = 1000 + far.it_value.tv_sec % 2;
    ::timerfd_settime(fd, 0, &far, nullptr);
  }
  ::close(fd);
}
BENCHMARK(timerfd_arm);

// Post a handler and run it.
void asio_post(benchmark::State& state)
{
  boost::asio::io_context context;
  for (auto _ : state) {
    boost::asio::post(context, [] {});
    context.poll_one();
    context.restart();
  }
}
BENCHMARK(asio_post);

}  // namespace

int main(int argc, char** argv)
{
  const bench::idle_thread
    second;  // as in every other benchmark: locks and atomics at the price that servers pay
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
