// The command line and the one line of JSON that all benchmark programs share.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

struct options {
  std::string contender, workload;
  std::size_t n = 10'000;
  std::uint64_t seed = 1;
  std::uint64_t steps = 2'000'000;  // measured steps of a churn
  double measure_seconds = 3;       // duration of workloads that last a fixed time
  std::size_t per_turn = 64;        // steps of a workload in one turn of the loop
  bool list = false, versions = false, help = false;
  // How the wheel is made; the other contenders ignore these.
  std::uint64_t tick_us = 1000, slots = 0, shards = 0, reserve = 0;
  std::string clock = "precise";
  bool huge_pages = false;  // wheel_alone: entries in transparent huge pages
};

inline constexpr std::string_view usage =
  R"(One measurement, in this process, printed as one line of JSON.
  --contender NAME   what is measured (--list shows all)
  --workload NAME    what it has to do (--list shows all)
  --n N              how many waits are outstanding            [10000]
  --seed N           seed of the delays and of the choice      [1]
  --steps N          measured steps of a churn                 [2000000]
  --per-turn N       steps done in one turn of the loop        [64]
  --seconds S        length of heartbeats, threads and idle    [3]
  --tick-us N --slots N --shards N --reserve N --clock precise|coarse
                     the wheel's options
  --huge-pages       entries in transparent huge pages (the wheel alone)
  --list             contenders and workloads, as JSON
  --versions         compiler and libraries, as JSON
run.py runs them all, several times, and compares.
)";

inline options parse_options(int argc, char** argv)
{
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto text = [&]() -> std::string {
      if (++i >= argc) throw std::invalid_argument(fmt::format("{} needs a value", name));
      return argv[i];
    };
    const auto real = [&] {
      const std::string value = text();
      std::size_t used = 0;
      double parsed = -1;
      try {
        parsed = std::stod(value, &used);
      } catch (const std::logic_error&) {
      }
      if (used != value.size() || !(parsed >= 0 && parsed <= 1e15))
        throw std::invalid_argument(fmt::format("{} {}: not a number in 0..1e15", name, value));
      return parsed;
    };
    const auto number = [&] { return static_cast<std::uint64_t>(real()); };  // 1e6 is a number, too
    if (name == "--contender")
      o.contender = text();
    else if (name == "--workload")
      o.workload = text();
    else if (name == "--n")
      o.n = number();
    else if (name == "--seed")
      o.seed = number();
    else if (name == "--steps")
      o.steps = number();
    else if (name == "--per-turn")
      o.per_turn = number();
    else if (name == "--seconds")
      o.measure_seconds = real();
    else if (name == "--tick-us")
      o.tick_us = number();
    else if (name == "--slots")
      o.slots = number();
    else if (name == "--shards")
      o.shards = number();
    else if (name == "--reserve")
      o.reserve = number();
    else if (name == "--clock")
      o.clock = text();
    else if (name == "--huge-pages")
      o.huge_pages = true;
    else if (name == "--list")
      o.list = true;
    else if (name == "--versions")
      o.versions = true;
    else if (name == "--help")
      o.help = true;
    else
      throw std::invalid_argument(fmt::format("unknown option {}\n{}", name, usage));
  }
  // Random choice of a wait uses 32 random bits.
  if (o.n == 0 || o.n > 1'000'000'000) throw std::invalid_argument("--n must be in 1..1000000000");
  if (o.clock != "precise" && o.clock != "coarse")
    throw std::invalid_argument(
      fmt::format("--clock must be precise or coarse, not '{}'", o.clock));
  if (o.per_turn == 0) throw std::invalid_argument("--per-turn must be at least 1");
  if (o.steps == 0) throw std::invalid_argument("--steps must be at least 1");
  if (!(o.measure_seconds > 0)) throw std::invalid_argument("--seconds must be more than 0");
  return o;
}

// Named numbers, in the order in which they were added.
using metrics = std::vector<std::pair<std::string, double>>;

inline void print_result(const options& o, const metrics& values)
{
  std::string numbers;
  for (const auto& [name, value] : values)
    numbers += fmt::format("{}\"{}\": {:.6g}", numbers.empty() ? "" : ", ", name, value);
  fmt::print("{{\"contender\": \"{}\", \"workload\": \"{}\", \"n\": {}, \"metrics\": {{{}}}}}\n",
             o.contender, o.workload, o.n, numbers);
}

inline void print_names(const std::vector<std::pair<std::string, std::vector<std::string>>>& lists)
{
  std::string out;
  for (const auto& [key, names] : lists) {
    out += fmt::format("{}\"{}\": [", out.empty() ? "" : ", ", key);
    for (std::size_t i = 0; i < names.size(); ++i)
      out += fmt::format("{}\"{}\"", i ? ", " : "", names[i]);
    out += "]";
  }
  fmt::print("{{{}}}\n", out);
}

inline void print_versions(const std::vector<std::pair<std::string, std::string>>& versions)
{
  std::string out;
  for (const auto& [what, version] : versions)
    out += fmt::format("{}\"{}\": \"{}\"", out.empty() ? "" : ", ", what, version);
  fmt::print("{{{}}}\n", out);
}

// Compiler and build, the same for all programs.
inline std::vector<std::pair<std::string, std::string>> build_versions()
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
  return {{"compiler", compiler},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                              FMT_VERSION % 100)}};
}

}  // namespace bench
