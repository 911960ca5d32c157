// Does what Asio's documentation does with a steady_timer, once with that and once with a
// wheel_timer: the same templates with another type. Prints what changes, and what does not.
#include "../common/command_line.hpp"
#include "../common/process.hpp"
#include "idioms.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace swap_timers {
namespace {

struct settings {
  int timers = 100;
  double seconds = 1;
};

struct outcome : observations {
  common::usage used;
};

/// Thrown on SIGINT and SIGTERM: what was running, and its results so far.
struct interrupted {
  std::string what;
};

/// Runs an idiom to its end. Throws interrupted on SIGINT or SIGTERM.
template <class Idiom>
outcome run(const settings& s, std::string_view timer)
{
  outcome o;
  bool enough = false;
  const common::usage before = common::usage_so_far();
  asio::io_context context(1);
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code ec, int) {
    if (ec) return;
    enough = true;
    context.stop();
  });
  crew all(context, signals);
  const Idiom idiom(all, s.timers, s.seconds, o);
  context.run();
  if (enough) {
    std::string what = fmt::format("{} {}, on {}:", s.timers, Idiom::name, timer);
    for (const auto& [name, count] : o.counts) what += fmt::format(" {} {},", count, name);
    what.back() = o.counts.empty() ? ' ' : '.';
    throw interrupted{std::move(what)};
  }
  const common::usage after = common::usage_so_far();
  o.used = {after.cpu_us - before.cpu_us, after.wakeups - before.wakeups};
  return o;
}

/// The lateness that `share` of the timers did not exceed.
std::string lateness(outcome& o, double share)
{
  auto& all = o.lateness;
  if (all.empty()) return "-";
  const auto last = static_cast<double>(all.size() - 1);
  const auto nth = all.begin() + static_cast<std::ptrdiff_t>(share * last);
  std::nth_element(all.begin(), nth, all.end());
  return fmt::format("{:.3f} ms", std::chrono::duration<double, std::milli>(*nth).count());
}

/// Prints both results. False if they differ where they must not.
bool print(const char* name, int n, outcome steady, outcome wheel)
{
  const auto row = [](std::string_view what, const std::string& s, const std::string& w,
                      std::string_view remark = "") {
    fmt::print("  {:<24}{:>14}{:>14}  {}\n", what, s, w, remark);
  };
  fmt::print("{} {}:\n", n, name);
  row("", "steady_timer", "wheel_timer");
  for (const auto& [what, count] : wheel.counts) steady.counts[what];
  for (const auto& [what, count] : steady.counts) {
    const auto other = wheel.counts[what];
    row(what, fmt::to_string(count), fmt::to_string(other), count == other ? "the same" : "WRONG");
  }
  const auto ms = [](const outcome& o) {
    return fmt::format("{:.1f} ms", static_cast<double>(o.used.cpu_us) / 1e3);
  };
  row("processor time", ms(steady), ms(wheel));
  row("wake-ups", fmt::to_string(steady.used.wakeups), fmt::to_string(wheel.used.wakeups));
  row("lateness, median", lateness(steady, 0.5), lateness(wheel, 0.5));
  row("          99 %", lateness(steady, 0.99), lateness(wheel, 0.99));
  fmt::print("\n");
  std::fflush(stdout);
  return steady.counts == wheel.counts;
}

/// Runs an idiom with both types of timer. False if the results differ where they must not.
template <template <class> class Idiom>
bool compare(const settings& s)
{
  const outcome steady = run<Idiom<asio::steady_timer>>(s, "steady_timer");
  const outcome wheel = run<Idiom<asio_wheel::wheel_timer>>(s, "wheel_timer");
  return print(Idiom<asio::steady_timer>::name, s.timers, steady, wheel);
}

constexpr std::string_view intro =
  R"(Usage: steady_timer_swap [option...]

Does three things that Asio's documentation does with a steady_timer, with it
and with a wheel_timer. The exit status is 1 if their results differ. Ctrl-C
ends it and prints the results until then.

Both run the same code and complete the same operations, with the same results
in the same order. But a wheel_timer expires at the next tick of its wheel, half
a tick later on average; all timers of a tick cost one wake-up; and a wait costs
less to start and cancel.
)";

}  // namespace
}  // namespace swap_timers

int main(int argc, char** argv)
{
  using namespace swap_timers;
  return common::run_program("steady_timer_swap", [&] {
    try {
      settings s;
      common::po::options_description options("Options");
      auto add = options.add_options();
      add("timers", common::ranged(s.timers, "timers", 1, 400, "n"),
          "connections, producers and timers, one after the other");
      add("seconds", common::ranged(s.seconds, "seconds", 0.1, 60.0, "s"),
          "how long the timers tick; as much of the rest");
      if (!common::parse_command_line(argc, argv, intro, options)) return EXIT_SUCCESS;
      common::need_open_files(2 * s.timers);
      const bool good = compare<deadlines>(s) && compare<conditions>(s) && compare<periods>(s);
      return good ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const interrupted& i) {
      fmt::print("Interrupted, with this so far:\n{}\n", i.what);
      return EXIT_SUCCESS;
    }
  });
}
