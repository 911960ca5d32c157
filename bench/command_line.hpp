// What the programs with contenders and workloads have in common: options, the wheel that these ask
// for, main function, and the one line of JSON.
#pragma once

#include "../examples/common/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <asio_wheel.hpp>
#include <boost/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace bench {

struct options {
  std::string contender, workload;
  std::size_t n = 10'000;
  std::uint64_t seed = 1;
  std::uint64_t steps = 2'000'000;  // measured steps of a churn
  double measure_seconds = 3;       // duration of workloads that last a fixed time
  std::size_t per_turn = 64;        // steps of a workload in one turn of the loop
  bool list = false, versions = false;
  // How the wheel is made; the other contenders ignore these.
  std::uint64_t tick_us = 1000, slots = 0, shards = 0;
  std::string clock = "precise";
};

// The wheel that the command line asks for.
inline asio_wheel::wheel_timer_service& install_wheel(asio_wheel::asio::io_context& context,
                                                      const options& o)
{
  asio_wheel::wheel_options w;
  w.tick = std::chrono::microseconds{o.tick_us};
  if (o.slots) w.slots = o.slots;
  w.shards = o.shards;
  if (o.clock == "coarse") w.clock = asio_wheel::clock_source::coarse;
  return asio_wheel::make_wheel(context, w);
}

// Named numbers, in the order in which they were added.
using metrics = std::vector<std::pair<std::string, double>>;

using workload_table = std::vector<std::pair<std::string, metrics (*)(const options&)>>;

// One contender of a program: its name and what it can do.
struct entry {
  std::string contender;
  workload_table workloads;
};

template <class Work>
metrics run_work(const options& o)
{
  // Never destroyed: nobody asks how fast a contender destroys its waits at exit.
  return (new Work{o})->run();
}

// False if the help was asked for, and printed.
inline bool parse_options(int argc, char** argv, options& o)
{
  namespace po = common::po;
  po::options_description all("Options");
  const auto add = [&](const char* name, auto* value, const char* text) {
    all.add_options()(name, value, text);
  };
  // As a real number, so that 1e6 is one.
  const auto number = [&](const char* name, auto& value, double lowest, double highest,
                          const char* unit, const char* text) {
    const auto take = [&value, name, lowest, highest](const std::string& given) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(
        common::number_in(name, given, lowest, highest));
    };
    add(name, po::value<std::string>()->value_name(unit)->notifier(take),
        fmt::format("{} [{}]", text, value).c_str());
  };
  constexpr double most = 1e15;
  add("contender", po::value(&o.contender)->value_name("NAME"), "what is measured; see --list");
  add("workload", po::value(&o.workload)->value_name("NAME"), "what it has to do; see --list");
  number("n", o.n, 1, 1e9, "N", "how many waits are outstanding");
  number("seed", o.seed, 0, most, "N", "seed of the delays and of the choice");
  number("steps", o.steps, 1, most, "N", "measured steps of a churn");
  number("per-turn", o.per_turn, 1, most, "N", "steps done in one turn of the loop");
  number("seconds", o.measure_seconds, 1e-6, 1e6, "S", "how long threads and re-arming take");
  number("tick-us", o.tick_us, 1, most, "N", "of the wheel: its tick in microseconds");
  number("slots", o.slots, 0, most, "N", "of the wheel: slots of a level; 0: as it is made");
  number("shards", o.shards, 0, most, "N", "of the wheel; 0: as many as processors");
  const auto known_clock = [](const std::string& clock) {
    if (clock != "precise" && clock != "coarse")
      throw po::error(fmt::format("--clock must be precise or coarse, not '{}'", clock));
  };
  add("clock", po::value(&o.clock)->value_name("NAME")->notifier(known_clock),
      "of the wheel: precise or coarse [precise]");
  add("list", po::bool_switch(&o.list), "contenders and workloads, as JSON");
  add("versions", po::bool_switch(&o.versions), "compiler and libraries, as JSON");
  return common::parse_command_line(argc, argv,
                                    "One measurement, in this process, printed as one line of "
                                    "JSON. run.py runs them all, several times, and compares.\n",
                                    all);
}

inline metrics run_selected(const options& o, const std::vector<entry>& entries)
{
  for (const auto& e : entries) {
    if (e.contender != o.contender) continue;
    for (const auto& [name, run] : e.workloads)
      if (name == o.workload) return run(o);
    throw common::po::error(
      fmt::format("{} has no workload '{}'; --list shows all", e.contender, o.workload));
  }
  throw common::po::error(fmt::format("no contender '{}'; --list shows all", o.contender));
}

// As JSON; none of the names and texts needs an escape.
inline std::string names_of(const std::vector<entry>& entries)
{
  std::vector<std::string> members;
  for (const auto& e : entries) {
    std::vector<std::string> names;
    for (const auto& w : e.workloads) names.push_back(fmt::format("\"{}\"", w.first));
    members.push_back(fmt::format("\"{}\": [{}]", e.contender, fmt::join(names, ", ")));
  }
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

inline std::string versions_of(const std::string& library, const std::string& version)
{
#if defined(__clang__)
  std::string compiler = "clang " __clang_version__;
#else
  std::string compiler = "g++ " __VERSION__;
#endif
#if defined(__OPTIMIZE__)
  compiler += " optimized";
#else
  compiler += " NOT OPTIMIZED";
#endif
#if !defined(NDEBUG)
  compiler += ", asserts on";
#endif
  return fmt::format(R"({{"compiler": "{}", "fmt": "{}.{}.{}", "{}": "{}"}})", compiler,
                     FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100, library,
                     version);
}

inline std::string result_of(const options& o, const metrics& values)
{
  std::vector<std::string> members;
  for (const auto& [name, value] : values)
    members.push_back(fmt::format("\"{}\": {}", name, value));
  return fmt::format(R"({{"contender": "{}", "workload": "{}", "n": {}, "metrics": {{{}}}}})",
                     o.contender, o.workload, o.n, fmt::join(members, ", "));
}

// Does what the command line asks for; for a workload, with a second thread that sleeps.
// `library` is one whose version the compiler does not tell.
inline int bench_main(int argc, char** argv, const std::vector<entry>& entries,
                      const std::string& library = "boost",
                      const std::string& version = BOOST_LIB_VERSION)
{
  return common::run_program(argv[0], [&] {
    options o;
    if (!parse_options(argc, argv, o)) return EXIT_SUCCESS;
    if (o.list) {
      fmt::print("{}\n", names_of(entries));
    } else if (o.versions) {
      fmt::print("{}\n", versions_of(library, version));
    } else {
      const idle_thread second;
      fmt::print("{}\n", result_of(o, run_selected(o, entries)));
      if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
      std::_Exit(EXIT_SUCCESS);  // what a workload leaves behind is never destroyed
    }
    return EXIT_SUCCESS;
  });
}

}  // namespace bench
