// Uses everything in the library from many threads at once, for as long as you like, and counts
// what was started and how it ended. See --help.
#include "soak/books.hpp"
#include "soak/memory.hpp"
#include "soak/visitor.hpp"
#include "soak/world.hpp"

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/program_options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace soak {
namespace {

namespace po = boost::program_options;
using steady = std::chrono::steady_clock;

struct settings {
  double seconds = 30;
  unsigned threads = 4;
  unsigned visitors = 2;
  std::uint64_t seed = 1;
  double progress = 5;
};

constexpr std::string_view intro =
  R"(Three contexts, each with a wheel and some 700 sessions that always wait for something: for a
time, a timer, a socket with a deadline, a tick, a silence. Visitors, threads from outside, touch,
cancel, set, start and destroy what they can reach. From time to time all is cancelled.

Checked all the while: no operation completes early, twice or with an error that it must not have;
the counters of the wheels never contradict each other; memory stays as it was when the first
quarter of the run was over (from 8 s up, and not under a sanitizer). At the end one context is
destroyed with all that is pending, the others come to their end by themselves; and each operation
has completed or been destroyed. Ctrl-C ends the run early, with the same checks.

Exit status: 0 if all held, 1 if not, 2 for a bad command line.
)";

/// Reads the options. Empty if --help was asked for. Throws po::error.
std::optional<settings> parse(int argc, char** argv)
{
  settings s;
  po::options_description options("Options");
  options.add_options()("help,h", "print this and exit")(
    "seconds", po::value(&s.seconds)->default_value(s.seconds), "how long")(
    "threads", po::value(&s.threads)->default_value(s.threads),
    "that run the contexts, 3 to 1000; shared out among these")(
    "visitors", po::value(&s.visitors)->default_value(s.visitors),
    "threads from outside, 0 to 1000")("seed", po::value(&s.seed)->default_value(s.seed),
                                       "of the random numbers")(
    "progress", po::value(&s.progress)->default_value(s.progress),
    "seconds from one line of progress to the next");
  po::variables_map values;
  // No abbreviations: a new option could make them ambiguous.
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(argc, argv).options(options).positional({}).style(style).run(),
            values);
  if (values.contains("help")) {
    std::cout << intro << '\n' << options;
    return std::nullopt;
  }
  po::notify(values);
  // Negated, so that it refuses NaN, too.
  if (!(s.seconds > 0 && s.seconds <= 1e7)) throw po::error("--seconds: must be in 0 to 10000000");
  if (!(s.progress > 0)) throw po::error("--progress: must be more than 0");
  if (s.threads < 3 || s.threads > 1000) throw po::error("--threads: must be in 3 to 1000");
  if (s.visitors > 1000) throw po::error("--visitors: must be in 0 to 1000");
  return s;
}

/// A usual wheel, one that cascades all the time, and one with too little room.
std::vector<asio_wheel::wheel_options> wheels()
{
  asio_wheel::wheel_options fine;
  fine.tick = 100us;
  fine.slots = 8;
  fine.shards = 4;
  fine.clock = asio_wheel::clock_source::coarse;
  asio_wheel::wheel_options limited;
  limited.slots = 64;
  limited.shards = 2;
  limited.max_pending = 1000;
  return {{}, fine, limited};
}

/// Reads the wheels' statistics and compares them with the previous ones.
class observer {
public:
  observer(books& b, std::deque<world>& worlds) : books_(b), worlds_(worlds), last_(worlds.size())
  {}

  void look()
  {
    for (std::size_t i = 0; i < worlds_.size(); ++i) {
      const auto now = worlds_[i].wheel.stats();
      const auto& last = last_[i];
      if (now.started != now.pending + now.expired + now.cancelled + now.met)
        books_.violated("stats: {} started, but {} pending, {} expired, {} cancelled", now.started,
                        now.pending, now.expired, now.cancelled);
      if (now.started < last.started || now.expired < last.expired ||
          now.cancelled < last.cancelled || now.rejected < last.rejected ||
          now.lateness.count() < last.lateness.count())
        books_.violated("stats: a counter went back");
      last_[i] = now;
    }
  }

  void print_progress(double seconds, const memory_use& memory) const
  {
    std::uint64_t pending = 0;
    asio_wheel::log2_histogram lateness;
    for (const auto& stats : last_) {
      pending += stats.pending;
      lateness += stats.lateness;
    }
    constexpr double mib = 1 << 20;
    fmt::print(
      "{:6.0f} s  {:8.2f} M done  {:6} pending  late by {:.1f} ms (99 %), {:.0f} ms at most"
      "  {:.0f} MiB, {:.0f} on the heap, {:.1f} in handlers\n",
      seconds, static_cast<double>(books_.total(&account::completed)) / 1e6, pending,
      static_cast<double>(lateness.percentile(99).count()) / 1e6,
      static_cast<double>(lateness.max().count()) / 1e6, static_cast<double>(memory.resident) / mib,
      static_cast<double>(memory.allocated) / mib, static_cast<double>(books_.handler_bytes) / mib);
    std::fflush(stdout);
  }

private:
  books& books_;
  std::deque<world>& worlds_;
  std::vector<asio_wheel::wheel_stats> last_;
};

/// Runs until the time is over, a promise is broken, or a signal comes.
void watch(const settings& s, books& b, std::deque<world>& worlds, memory_history& memory)
{
  asio::io_context control;
  asio::signal_set signals(control, SIGINT, SIGTERM);
  bool interrupted = false;
  signals.async_wait([&](error_code ec, int) { interrupted = !ec; });

  observer all(b, worlds);
  const auto begin = steady::now();
  double next_progress = s.progress;
  for (std::size_t round = 1; !interrupted && b.violations == 0; ++round) {
    control.run_one_for(50ms);
    const double seconds = std::chrono::duration<double>(steady::now() - begin).count();
    if (seconds >= s.seconds) break;
    all.look();
    if (round % 8 == 0) worlds[round / 8 % worlds.size()].wheel.cancel_all();
    const memory_use use = use_now(seconds);
    memory.add(use);
    if (seconds < next_progress) continue;
    next_progress += s.progress;
    all.print_progress(seconds, use);
  }
  if (interrupted) fmt::print("interrupted\n");
}

/// Prints the verdict once only the counters are left.
void close_books(books& b, const memory_history& memory)
{
  fmt::print("\n{:>10} {:>13} {:>13} {:>13}\n", "", "started", "completed", "destroyed");
  for (std::size_t i = 0; i < b.accounts.size(); ++i) {
    const account& a = b.accounts[i];
    fmt::print("{:>10} {:13} {:13} {:13}\n", kind_names[i], a.started.load(), a.completed.load(),
               a.destroyed.load());
    if (a.open() != 0)
      b.violated("{} of the kind {} neither completed nor were destroyed",
                 static_cast<std::int64_t>(a.open()), kind_names[i]);
    if (a.completed == 0) b.violated("none of the kind {} completed", kind_names[i]);
  }
  if (b.handler_bytes != 0)
    b.violated("{} bytes of handlers were not given back", b.handler_bytes.load());
  if (!memory.can_tell()) return;
  const auto compare = [&](const char* what, std::size_t memory_use::*of) {
    const std::size_t before = memory.most(of, memory_history::warm, memory_history::middle);
    const std::size_t after = memory.most(of, memory_history::middle, 1);
    fmt::print("{}: at most {} KiB, later {} KiB\n", what, before >> 10, after >> 10);
    if (!memory.is_flat(of)) b.violated("memory grows: {}", what);
  };
  compare("resident", &memory_use::resident);
  compare("on the heap", &memory_use::allocated);
}

int run(const settings& s)
{
  books b;
  memory_history memory;
  {
    random_source seeds(s.seed);
    std::deque<world> worlds;
    for (const auto& options : wheels()) worlds.emplace_back(b, options, seeds());
    const auto n = static_cast<unsigned>(worlds.size());
    for (unsigned i = 0; i < n; ++i)
      worlds[i].start(static_cast<int>(s.threads / n + (i < s.threads % n ? 1 : 0)));

    std::atomic<bool> going = true;
    std::vector<std::thread> visitors;
    for (unsigned i = 0; i < s.visitors; ++i) {
      visitors.emplace_back([&, seed = seeds()] { visitor(b, worlds, seed).run(going); });
    }
    watch(s, b, worlds, memory);
    going = false;
    for (auto& thread : visitors) thread.join();
    worlds[0].drain();
    worlds[1].abandon();
    worlds[2].drain();
  }
  close_books(b, memory);
  fmt::print("{} handlers threw, as they were to\n", b.thrown.load());
  if (b.violations == 0)
    fmt::print("all promises were kept\n");
  else
    fmt::print(stderr, "{} violations; the seed was {}\n", b.violations.load(), s.seed);
  return b.violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace soak

int main(int argc, char* argv[])
{
  try {
    const auto settings = soak::parse(argc, argv);
    return settings ? soak::run(*settings) : 0;
  } catch (const boost::program_options::error& e) {
    fmt::print(stderr, "soak: {}; see --help\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "soak: {}\n", e.what());
    return 1;
  }
}
