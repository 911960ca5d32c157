// Small objects: tasks by key, watchdogs that follow the pressure, and a day of heartbeats.
//   string    keyed_scheduler<std::string>, keys of 10 to 15 characters
//   integer   keyed_scheduler<std::uint64_t>
//   string_map, integer_map   the floor: a boost::unordered_flat_map to tasks that have a deadline,
//             set by a reading of the clock, and which nobody looks at
//   watchdog  wheel_watchdog with an idle_window
//   heartbeat asio_wheel::heartbeat
// Workloads of tasks, n of which are live:
//   put          a run_after() for each: CPU ns per task, and bytes of memory per task, the map and
//                the wait included
//   reschedule   moves a random task to within 1..60 s: CPU ns per step
//   cancel_put   the same by cancel() and run_after(), the handlers of the cancelled included
// Workloads of watchdogs:
//   pressure     n pending, idle_window 1 s..1 h, all just touched but for every thousandth, which
//                is idle for 2 s: the pressure rises at once to what leaves 1.5 s. longest_us: the
//                longest turn of the loop, in CPU time; follow_ms: the time from the rise until the
//                last of the idle has expired; cpu_ns: per watchdog, in that time; bytes: of a
//                watchdog and its wait
//   steps        the same, all touched, and a thousand rises by a hundred-thousandth, one each
//                ms. longest_us: as above; cpu_percent: CPU time, of the time
// Workloads of heartbeats:
//   day          virtual_time passes through a day of n of them, each pinged every 30 s and
//   answered
//                at once: seconds of CPU time, pings, and CPU ns per ping
//   aligned_day  the same, all pinged in the same ticks
#include <boost/asio/io_context.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "install_wheel.hpp"
#include "workloads.hpp"

namespace {

using namespace bench;
namespace asio = boost::asio;

template <class Key>
Key key_of(std::uint64_t i)
{
  const std::uint64_t mixed = random_numbers(i)();
  if constexpr (std::is_same_v<Key, std::string>)
    return fmt::format("k{}", mixed % 100'000'000'000'000);
  else
    return mixed;
}

std::uint64_t bytes_per(std::uint64_t before, std::size_t n)
{
  return (std::max(resident_bytes(), before) - before) / n;
}

template <class Key>
class map_of_tasks {
public:
  explicit map_of_tasks(asio::io_context&) {}

  template <class Function>
  void run_after(const Key& key, nanoseconds delay, Function f)
  {
    const auto deadline = steady_clock::now() + delay;
    tasks_.insert_or_assign(key, std::make_unique<task>(deadline, f));
  }
  void reschedule(const Key& key, nanoseconds delay)
  {
    tasks_.find(key)->second->deadline = steady_clock::now() + delay;
  }
  void cancel(const Key& key) { tasks_.erase(key); }

private:
  struct task {
    task(time_point t, void (*f)()) : deadline{t}, function{f} {}

    time_point deadline;
    void (*function)();
  };

  boost::unordered_flat_map<Key, std::unique_ptr<task>> tasks_;
};

template <class Key, class Scheduler>
class tasks {
public:
  explicit tasks(const options& o) : options_{o}, random_{o.seed}
  {
    install_wheel(context_, o);
    scheduler_.emplace(context_);
  }

  metrics put()
  {
    constexpr std::size_t piece = 64;
    std::array<Key, piece> keys;
    nanoseconds spent{};
    const auto before = resident_bytes();
    for (std::size_t i = 0; i < options_.n;) {
      const std::size_t m = std::min(piece, options_.n - i);
      for (std::size_t k = 0; k < m; ++k) keys[k] = key_of<Key>(i++);
      const auto cpu = thread_cpu();
      for (std::size_t k = 0; k < m; ++k) scheduler_->run_after(keys[k], delay(), [] {});
      spent += thread_cpu() - cpu;
    }
    const double ns = ns_per(spent, options_.n);
    return {{"cpu_ns", ns}, {"bytes", static_cast<double>(bytes_per(before, options_.n))}};
  }

  metrics reschedule()
  {
    return step([this](const Key& key) { scheduler_->reschedule(key, delay()); });
  }

  metrics cancel_put()
  {
    return step([this](const Key& key) {
      scheduler_->cancel(key);
      scheduler_->run_after(key, delay(), [] {});
    });
  }

private:
  [[nodiscard]] nanoseconds delay() { return random_.between(seconds{1}, seconds{60}); }

  void fill()
  {
    for (std::size_t i = 0; i < options_.n; ++i)
      scheduler_->run_after(key_of<Key>(i), delay(), [] {});
  }

  // Makes the keys of a batch before it reads the clock.
  template <class Step>
  metrics step(Step s)
  {
    fill();
    context_.poll();
    std::vector<Key> keys(options_.per_turn);
    nanoseconds spent{};
    std::uint64_t steps = 0;
    while (steps < options_.steps) {
      for (auto& key : keys) key = key_of<Key>(random_.below(options_.n));
      const auto cpu = thread_cpu();
      for (const auto& key : keys) s(key);
      context_.poll();
      spent += thread_cpu() - cpu;
      steps += keys.size();
    }
    return {{"cpu_ns", ns_per(spent, steps)}};
  }

  const options options_;
  const idle_thread second_;
  random_numbers random_;
  asio::io_context context_{1};
  std::optional<Scheduler> scheduler_;
};

class watchdogs {
public:
  explicit watchdogs(const options& o) : options_{o} {}

  metrics pressure()
  {
    const auto bytes = fill();
    // The turns are timed in the first of two rises, which are the same but for that.
    let_idle(0);
    wheel_.set_pressure(high);
    while (turn() || expired_ < idle_) {
    }
    wheel_.set_pressure(0);
    let_idle(1);
    const auto cpu = thread_cpu();
    const auto begin = steady_clock::now();
    wheel_.set_pressure(high);
    while (expired_ < idle_) context_.poll();
    const auto end = steady_clock::now();
    const auto spent = thread_cpu() - cpu;
    return {{"longest_us", micros(longest_)},
            {"follow_ms", micros(end - begin) / 1e3},
            {"cpu_ns", ns_per(spent, options_.n)},
            {"bytes", static_cast<double>(bytes)},
            {"sizeof", sizeof(asio_wheel::wheel_watchdog)}};
  }

  metrics steps()
  {
    fill();
    const auto cpu = thread_cpu();
    const auto begin = steady_clock::now();
    constexpr int rises = 1000;
    for (int i = 1; i <= rises; ++i) {
      wheel_.set_pressure(i * 1e-5);
      context_.restart();
      while (turn()) {
      }
      std::this_thread::sleep_until(begin + i * milliseconds{1});
    }
    const auto spent = micros(thread_cpu() - cpu);
    return {{"longest_us", micros(longest_)},
            {"cpu_percent", 100 * spent / micros(steady_clock::now() - begin)}};
  }

private:
  /// Returns the bytes that each takes.
  std::uint64_t fill()
  {
    const auto before = resident_bytes();
    dogs_.reserve(options_.n);
    for (std::size_t i = 0; i < options_.n; ++i) {
      dogs_.emplace_back(wheel_, asio_wheel::idle_window{seconds{1}, seconds{3600}});
      dogs_.back().async_expired([this](boost::system::error_code ec) {
        if (!ec) ++expired_;
      });
    }
    context_.poll();
    return bytes_per(before, options_.n);
  }

  /// All are touched after 2 s, but for every thousandth from `first` on.
  void let_idle(std::size_t first)
  {
    context_.run_for(seconds{2});
    for (std::size_t i = 0; i < options_.n; ++i) {
      if (i % 1000 != first)
        dogs_[i].touch();
      else
        ++idle_;
    }
  }

  /// A turn of the loop. Whether there was anything to do.
  bool turn()
  {
    const auto begin = thread_cpu();
    const bool any = context_.poll_one() != 0;
    longest_ = std::max(longest_, thread_cpu() - begin);
    return any;
  }

  static constexpr double high = (3600 - 1.5) / (3600 - 1);  // leaves 1.5 s

  const options options_;
  const idle_thread second_;
  asio::io_context context_{1};
  asio_wheel::wheel_timer_service& wheel_{install_wheel(context_, options_)};
  std::vector<asio_wheel::wheel_watchdog> dogs_;
  std::size_t idle_ = 0;  ///< of them
  std::size_t expired_ = 0;
  nanoseconds longest_{};
};

class heartbeats {
public:
  explicit heartbeats(const options& o) : options_{o} {}

  metrics day() { return live(seconds{30}); }
  metrics aligned_day() { return live({}); }

private:
  struct ping {
    asio_wheel::heartbeat& beat;
    std::uint64_t& pings;

    void operator()(boost::system::error_code ec, asio_wheel::heartbeat_event) const
    {
      if (ec) return;
      ++pings;
      beat.received();
      beat.async_next(*this);
    }
  };

  // All heartbeats begin within `spread`.
  metrics live(nanoseconds spread)
  {
    asio_wheel::virtual_time time{wheel_};
    beats_.reserve(options_.n);
    for (std::size_t i = 0; i < options_.n; ++i) {
      beats_.emplace_back(wheel_, asio_wheel::heartbeat_options{seconds{30}, 3});
      beats_.back().async_next(ping{beats_.back(), pings_});
      time.advance(spread / static_cast<nanoseconds::rep>(options_.n));
    }
    const auto cpu = thread_cpu();
    pings_ = 0;
    const auto passage = time.advance_until_idle(std::chrono::hours{24});
    const auto spent = thread_cpu() - cpu;
    return {{"cpu_s", micros(spent) / 1e6},
            {"pings", static_cast<double>(passage.expired)},
            {"cpu_ns", ns_per(spent, passage.expired)}};
  }

  const options options_;
  const idle_thread second_;
  asio::io_context context_{1};
  asio_wheel::wheel_timer_service& wheel_{install_wheel(context_, options_)};
  std::vector<asio_wheel::heartbeat> beats_;
  std::uint64_t pings_ = 0;
};

template <class Work, metrics (Work::*Measure)()>
metrics measure(const options& o)
{
  return ((new Work{o})->*Measure)();  // never destroyed
}

template <class Key, class Scheduler = asio_wheel::keyed_scheduler<Key>>
entry tasks_by(std::string name)
{
  using work = tasks<Key, Scheduler>;
  return {std::move(name),
          {{"put", measure<work, &work::put>},
           {"reschedule", measure<work, &work::reschedule>},
           {"cancel_put", measure<work, &work::cancel_put>}}};
}

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv,
                    {tasks_by<std::string>("string"), tasks_by<std::uint64_t>("integer"),
                     tasks_by<std::string, map_of_tasks<std::string>>("string_map"),
                     tasks_by<std::uint64_t, map_of_tasks<std::uint64_t>>("integer_map"),
                     entry{"watchdog",
                           {{"pressure", measure<watchdogs, &watchdogs::pressure>},
                            {"steps", measure<watchdogs, &watchdogs::steps>}}},
                     entry{"heartbeat",
                           {{"day", measure<heartbeats, &heartbeats::day>},
                            {"aligned_day", measure<heartbeats, &heartbeats::aligned_day>}}}},
                    {{"boost", BOOST_LIB_VERSION}});
}
