// Linked to each program that measures workloads.
#include "command_line.hpp"

#include "../examples/common/command_line.hpp"

#include <fmt/format.h>
// Boost.JSON as a part of this file, which needs no library of it then.
#include <boost/json/src.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace bench {
namespace {

namespace json = boost::json;
namespace po = common::po;

// False if the help was asked for, and printed.
bool parse_options(int argc, char** argv, options& o)
{
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
  number("seconds", o.measure_seconds, 1e-6, 1e6, "S", "length of heartbeats, threads and idle");
  number("tick-us", o.tick_us, 1, most, "N", "of the wheel: its tick in microseconds");
  number("slots", o.slots, 0, most, "N", "of the wheel: slots of a level; 0: as it is made");
  number("shards", o.shards, 0, most, "N", "of the wheel; 0: as many as processors");
  const auto known_clock = [](const std::string& clock) {
    if (clock != "precise" && clock != "coarse")
      throw po::error(fmt::format("--clock must be precise or coarse, not '{}'", clock));
  };
  add("clock", po::value(&o.clock)->value_name("NAME")->notifier(known_clock),
      "of the wheel: precise or coarse [precise]");
  add("huge-pages", po::bool_switch(&o.huge_pages),
      "entries in transparent huge pages (the wheel alone)");
  add("list", po::bool_switch(&o.list), "contenders and workloads, as JSON");
  add("versions", po::bool_switch(&o.versions), "compiler and libraries, as JSON");
  return common::parse_command_line(argc, argv,
                                    "One measurement, in this process, printed as one line of "
                                    "JSON. run.py runs them all, several times, and compares.\n",
                                    all);
}

metrics run_selected(const options& o, const std::vector<entry>& entries)
{
  for (const auto& e : entries) {
    if (e.contender != o.contender) continue;
    for (const auto& [name, run] : e.workloads)
      if (name == o.workload) return run(o);
    throw po::error(
      fmt::format("{} has no workload '{}'; --list shows all", e.contender, o.workload));
  }
  throw po::error(fmt::format("no contender '{}'; --list shows all", o.contender));
}

json::object names_of(const std::vector<entry>& entries)
{
  json::object out;
  for (const auto& e : entries) {
    json::array names;
    for (const auto& w : e.workloads) names.emplace_back(w.first);
    out[e.contender] = std::move(names);
  }
  return out;
}

json::object versions_of(const std::vector<std::pair<std::string, std::string>>& libraries)
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
  json::object out{{"compiler", compiler},
                   {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                                       FMT_VERSION % 100)}};
  for (const auto& [library, version] : libraries) out[library] = version;
  return out;
}

void print(const json::value& value)
{
  fmt::print("{}\n", serialize(value));
}

}  // namespace

int bench_main(int argc, char** argv, const std::vector<entry>& entries,
               const std::vector<std::pair<std::string, std::string>>& libraries)
{
  return common::run_program(argv[0], [&] {
    options o;
    if (!parse_options(argc, argv, o)) return EXIT_SUCCESS;
    if (o.list) {
      print(names_of(entries));
    } else if (o.versions) {
      print(versions_of(libraries));
    } else {
      const idle_thread second;
      print_result(o, run_selected(o, entries));
      if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
      std::_Exit(EXIT_SUCCESS);  // what a workload leaves behind is never destroyed
    }
    return EXIT_SUCCESS;
  });
}

void print_result(const options& o, const metrics& values)
{
  json::object numbers;
  for (const auto& [name, value] : values) numbers[name] = value;
  print({{"contender", o.contender},
         {"workload", o.workload},
         {"n", o.n},
         {"metrics", std::move(numbers)}});
}

}  // namespace bench
