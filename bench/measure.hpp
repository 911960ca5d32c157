// What every benchmark measures with: clocks, memory, random numbers, lateness.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace bench {

using steady_clock = std::chrono::steady_clock;
using time_point = steady_clock::time_point;
using duration = steady_clock::duration;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

inline nanoseconds cpu_clock(clockid_t id)
{
  timespec t{};
  ::clock_gettime(id, &t);
  return seconds{t.tv_sec} + nanoseconds{t.tv_nsec};
}

// CPU time of all threads of this process.
inline nanoseconds process_cpu()
{
  return cpu_clock(CLOCK_PROCESS_CPUTIME_ID);
}

// CPU time of the calling thread, which other processes disturb least.
inline nanoseconds thread_cpu()
{
  return cpu_clock(CLOCK_THREAD_CPUTIME_ID);
}

// What the process has spent, in user mode and in the kernel.
struct spent {
  nanoseconds user{}, system{};

  static spent so_far()
  {
    rusage r{};
    ::getrusage(RUSAGE_SELF, &r);
    const auto of = [](const timeval& t) {
      return seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
    };
    return {of(r.ru_utime), of(r.ru_stime)};
  }

  friend spent operator-(const spent& a, const spent& b)
  {
    return {a.user - b.user, a.system - b.system};
  }
};

inline double ns_per(nanoseconds spent, std::uint64_t units)
{
  return units == 0 ? 0.0 : static_cast<double>(spent.count()) / static_cast<double>(units);
}

inline double micros(nanoseconds t)
{
  return static_cast<double>(t.count()) / 1e3;
}

// Bytes of this process that are in RAM now.
inline std::uint64_t resident_bytes()
{
  unsigned long long total = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) throw std::runtime_error("cannot open /proc/self/statm");
  const int read = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  if (read != 2) throw std::runtime_error("cannot read /proc/self/statm");
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Binds the calling thread to the nth processor it may use, counted round and round. Otherwise the
// kernel sometimes keeps threads that wake each other on one processor for seconds, where they
// never contend.
inline void run_on_processor(unsigned nth)
{
  cpu_set_t allowed, one;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    throw std::runtime_error("cannot read the affinity mask");
  nth %= static_cast<unsigned>(CPU_COUNT(&allowed));
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || nth-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
    return;
  }
}

// splitmix64: cheap, and the same sequence on every machine.
class random_numbers {
public:
  explicit random_numbers(std::uint64_t seed) : state_{seed * 0x9e3779b97f4a7c15u} {}

  std::uint64_t operator()()
  {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), bound below 2^32.
  std::uint64_t below(std::uint64_t bound) { return ((*this)() >> 32) * bound >> 32; }

  // Uniform in [from, to) in steps of a microsecond.
  nanoseconds between(nanoseconds from, nanoseconds to)
  {
    const auto span = static_cast<std::uint64_t>((to - from).count() / 1000);
    return from + nanoseconds{1000 * static_cast<std::int64_t>(below(span))};
  }

private:
  std::uint64_t state_;
};

// How late the noted waits completed, and how many were early.
class lateness {
public:
  explicit lateness(std::size_t capacity) : late_(capacity)
  {
    late_.clear();  // its memory stays, and has been touched
  }

  void note(time_point now, time_point deadline)
  {
    const auto late = now - deadline;
    early_ += late < duration::zero();
    // Never grows: an allocation here would count as the contender's.
    if (late_.size() < late_.capacity()) late_.push_back(late.count());
  }

  std::uint64_t early() const { return early_; }

  double percentile_us(double p)
  {
    if (late_.empty()) return 0;
    const auto rank = static_cast<std::size_t>(p / 100 * static_cast<double>(late_.size() - 1));
    const auto nth = late_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(late_.begin(), nth, late_.end());
    return static_cast<double>(*nth) / 1e3;
  }

private:
  std::vector<std::int64_t> late_;
  std::uint64_t early_ = 0;
};

// A second thread that does nothing. The C library leaves out atomic instructions while a process
// has only one thread. Servers have more, so contenders have, too.
class idle_thread {
public:
  idle_thread() : thread_{[this] { sleep(); }} {}
  ~idle_thread()
  {
    {
      std::lock_guard lock{mutex_};
      done_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  idle_thread(const idle_thread&) = delete;
  idle_thread& operator=(const idle_thread&) = delete;

private:
  void sleep()
  {
    std::unique_lock lock{mutex_};
    wake_.wait(lock, [this] { return done_; });
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace bench
