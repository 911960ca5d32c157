// Shows how large a wheel must be, and what it costs, before there is a server. It simulates up to
// ten million connections for up to a day, in the wheel's virtual time and on one processor.
#include "../common/command_line.hpp"
#include "../common/print_error.hpp"
#include "../common/process.hpp"
#include "fleet.hpp"
#include "report.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

namespace simulate {
namespace {

namespace asio = boost::asio;
namespace po = common::po;
using namespace std::chrono_literals;
using common::ranged;

double processor_seconds()
{
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Shows a bar on a terminal, and elsewhere a line for every tenth.
class progress {
public:
  void show(double share, const figures& f)
  {
    const auto now = real_clock::now();
    if (terminal_ ? now < next_ : share < next_share_) return;
    next_ = now + 200ms;
    next_share_ += 0.1;
    const double real = std::chrono::duration<double>(now - start_).count();
    common::print_error(
      "{}[{:#>{}}{:.>{}}] {:5.1f} %  {:.2f} million waits a second, {:.0f} s to go{}",
      terminal_ ? "\r" : "", "", bar(share), "", width - bar(share), 100 * share,
      static_cast<double>(f.ended()) / real / 1e6, real / share - real,
      terminal_ ? "\x1b[K" : "\n");
  }
  void clear()
  {
    if (terminal_) common::print_error("\r\x1b[K");
  }

private:
  static constexpr int width = 30;
  static int bar(double share) { return static_cast<int>(width * share); }

  const bool terminal_ = common::stderr_is_terminal();
  const real_clock::time_point start_ = real_clock::now();
  real_clock::time_point next_ = start_ + 200ms;
  double next_share_ = 0.1;
};

/// Simulates until the end, or until SIGINT or SIGTERM.
results run(settings& s)
{
  asio::io_context context(1);
  auto& wheel = asio_wheel::make_wheel(context, s.wheel);
  s.wheel = wheel.options();
  bool stopping = false;
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code, int) {
    stopping = true;
    signals.clear();  // a second Ctrl-C ends the program at once
  });

  asio_wheel::virtual_time time(wheel);
  fleet all(wheel, s);
  results r;
  r.samples.emplace_back();
  const double steps_per_hour = static_cast<double>(1h / fleet::step);
  const auto steps = std::max(2L, static_cast<long>(s.hours * steps_per_hour));
  const double cpu_before = processor_seconds();
  const auto start = real_clock::now();
  progress bar;
  const auto look = [&](long done) {
    r.processor_seconds = processor_seconds() - cpu_before;
    r.samples.push_back({static_cast<double>(done) / steps_per_hour, all.counted(), all.closed()});
  };
  constexpr long looks = 240;
  for (long step = 1; step <= steps && !stopping; ++step) {
    if (step == steps / 2) all.fail_together(s.outage);
    all.begin_step();
    time.advance(fleet::step);
    if (step == steps || stopping || step * looks / steps != (step - 1) * looks / steps) look(step);
    bar.show(static_cast<double>(step) / static_cast<double>(steps), all.counted());
  }
  bar.clear();
  r.real_seconds = std::chrono::duration<double>(real_clock::now() - start).count();
  r.failing = all.failing();
  r.lateness = all.lateness();
  r.wheel = wheel.stats();
  r.memory = common::peak_memory();
  return r;
}

constexpr std::string_view intro =
  R"(Usage: simulate [option...]

Simulates the timeouts of a server with many connections, so that its wheel has
the right size before it is in production. Every connection has a heartbeat;
requests have a deadline, which the answer cancels; peers fail, are given up
when they miss too many heartbeats, and connect again. Time is virtual: an hour
takes as long as there is something to do in it.

How to read the result, and what to turn:
  tick    deadlines are rounded up to it. A longer one costs fewer wake-ups, and
          lateness: half of it on average. Make it as long as the protocol can
          bear, and longer than the time that it takes to complete what is due
          in one tick.
  slots   of the finest level. A wait that is more than tick * slots away moves
          to a finer level once before it is due, and beyond
          tick * slots * slots / 4 twice, unless it is cancelled before.
          More slots take more memory and save such moves.
  shards  keep threads that start waits out of each other's way. The simulation
          has one thread, so it shows only what more shards cost.

Ctrl-C ends the simulation early and reports what was simulated until then.
The exit status is 1 if the figures do not add up, and 2 if an option is wrong.
)";

/// Reads the options. False if --help was asked for.
bool read_settings(int argc, char** argv, settings& s, std::string& json)
{
  double tick = 1;
  std::size_t most_shards = asio_wheel::max_shards;
  po::options_description options("Options");
  auto add = options.add_options();
  add("connections", ranged(s.connections, "connections", 1u, 10'000'000u, "n"),
      "how large the fleet is");
  add("hours", ranged(s.hours, "hours", 0.001, 24.0, "h"), "how long to simulate");
  add("tick", ranged(tick, "tick", 0.001, 60'000.0, "ms"), "the wheel's: resolution of deadlines");
  add("slots", ranged(s.wheel.slots, "slots", std::size_t{1}, std::size_t{65'536}, "n"),
      "the wheel's: of its finest level");
  add("shards", ranged(s.wheel.shards, "shards", std::size_t{0}, most_shards, "n"),
      "the wheel's: independent parts; 0: as many as there are processors");
  add("ramp", ranged(s.ramp, "ramp", 0.0, 3600.0, "s"),
      "how long it takes the fleet to connect; with 0, all heartbeats are due in the same tick");
  add("heartbeat", ranged(s.heartbeat, "heartbeat", 0.1, 3600.0, "s"), "of every connection");
  add("max-missed", ranged(s.max_missed, "max-missed", 1, 250, "n"),
      "heartbeats that a peer may miss before it is lost");
  add("request-every", ranged(s.request_every, "request-every", 0.0, 86'400.0, "s"),
      "mean time between requests on one connection; 0: none");
  add("deadline", ranged(s.deadline, "deadline", 0.01, 3600.0, "s"), "of every request");
  add("latency", ranged(s.latency, "latency", 0.0001, 3600.0, "s"), "of answers, the mean");
  add("loss", ranged(s.loss, "loss", 0.0, 1.0, "0..1"),
      "share of the requests that are never answered");
  add("failure-every", ranged(s.failure_every, "failure-every", 0.0, 87'600.0, "h"),
      "mean time between failures of one peer; 0: none");
  add("outage", ranged(s.outage, "outage", 0.0, 1.0, "0..1"),
      "share of the peers that fail at the same moment, at half time");
  add("reconnect", ranged(s.reconnect, "reconnect", 0.0, 3600.0, "s"),
      "longest time that a lost peer takes to connect again");
  add(
    "seed",
    ranged(s.seed, "seed", decltype(s.seed){0}, std::numeric_limits<decltype(s.seed)>::max(), "n"),
    "of everything random");
  add("json", po::value(&json)->value_name("file"), "write the result here; chart.py draws it");
  if (!common::parse_command_line(argc, argv, intro, options)) return false;
  s.wheel.tick = std::chrono::nanoseconds(static_cast<std::int64_t>(tick * 1e6));
  return true;
}

}  // namespace
}  // namespace simulate

int main(int argc, char** argv)
{
  using namespace simulate;
  return common::run_program("simulate", [&] {
    settings s;
    std::string json;
    if (!read_settings(argc, argv, s, json)) return EXIT_SUCCESS;
    if (!json.empty()) need_writable(json);
    const results r = run(s);
    print(s, r);
    const auto errors = audit(s, r);
    if (errors.empty()) fmt::print("\nThe figures add up.\n");
    std::fflush(stdout);
    for (const auto& sentence : errors)
      common::print_error("simulate: the figures do not add up: {}.\n", sentence);
    if (!json.empty()) write_json(json, s, r);
    return errors.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
