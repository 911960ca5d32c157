// What the programs with contenders and workloads have in common: options, main function, and the
// one line of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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
  bool list = false, versions = false;
  // How the wheel is made; the other contenders ignore these.
  std::uint64_t tick_us = 1000, slots = 0, shards = 0;
  std::string clock = "precise";
  bool huge_pages = false;  // wheel_alone: entries in transparent huge pages
};

// Named numbers, in the order in which they were added.
using metrics = std::vector<std::pair<std::string, double>>;

using workload_table = std::vector<std::pair<std::string, metrics (*)(const options&)>>;

// One contender of a program: its name and what it can do.
struct entry {
  std::string contender;
  workload_table workloads;
};

// Does what the command line asks for; for a workload, with a second thread that sleeps.
// `libraries` and their versions are those that the compiler does not tell.
int bench_main(int argc, char** argv, const std::vector<entry>& entries,
               const std::vector<std::pair<std::string, std::string>>& libraries);

void print_result(const options& o, const metrics& values);

}  // namespace bench
