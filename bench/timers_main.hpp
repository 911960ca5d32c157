// The main function of every program that measures event-loop timers: picks the contender and the
// workload.
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "contender.hpp"
#include "measure.hpp"
#include "work_churn.hpp"
#include "work_expire.hpp"
#include "work_pending.hpp"

namespace bench {

using workload_table = std::vector<std::pair<std::string, metrics (*)(const options&)>>;

template <class Work>
metrics run_work(const options& o)
{
  // Never destroyed: nobody asks how fast a contender destroys its waits at exit.
  return (new Work{o})->run();
}

// The workloads this contender can do.
template <class Contender>
workload_table workloads_of()
{
  workload_table t;
  if constexpr (Contender::any_delay) {
    t.emplace_back("start", run_work<start_work<Contender, start_figure::mean>>);
    t.emplace_back("first_start", run_work<start_work<Contender, start_figure::longest>>);
    if constexpr (Contender::cancels) {
      t.emplace_back("churn", run_work<churn_work<Contender, churn_delays::spread>>);
      t.emplace_back("churn_far", run_work<churn_work<Contender, churn_delays::far>>);
      if constexpr (Contender::expires)
        t.emplace_back("churn_expiry",
                       run_work<churn_work<Contender, churn_delays::far_and_expiry>>);
    }
    t.emplace_back("memory", run_work<memory_work<Contender>>);
    t.emplace_back("contexts", run_work<contexts_work<Contender>>);
  }
  if constexpr (Contender::any_delay && Contender::expires) {
    t.emplace_back("expire", run_work<expire_work<Contender, expiry::spread>>);
    if constexpr (Contender::many_threads)
      t.emplace_back("shards", run_work<expire_work<Contender, expiry::by_threads>>);
    t.emplace_back("overdue", run_work<expire_work<Contender, expiry::overdue>>);
    t.emplace_back("burst", run_work<expire_work<Contender, expiry::burst>>);
    t.emplace_back("stall", run_work<expire_work<Contender, expiry::probed>>);
    t.emplace_back("heartbeat", run_work<repeat_work<Contender, period::second>>);
    t.emplace_back("rearm", run_work<repeat_work<Contender, period::random>>);
    t.emplace_back("idle", run_work<idle_work<Contender>>);
  }
  if constexpr (Contender::cancels)
    t.emplace_back("churn_fixed", run_work<churn_work<Contender, churn_delays::fixed>>);
  if constexpr (Contender::cancels && Contender::many_threads) {
    t.emplace_back("parallel1", run_work<parallel_work<Contender, 1>>);
    t.emplace_back("parallel2", run_work<parallel_work<Contender, 2>>);
  }
  return t;
}

// One contender of a program: its name and what it can do.
struct entry {
  std::string contender;
  workload_table workloads;
};

template <class... Contenders>
std::vector<entry> contenders()
{
  return {entry{Contenders::name, workloads_of<Contenders>()}...};
}

inline metrics run_selected(const options& o, const std::vector<entry>& entries)
{
  for (const auto& e : entries) {
    if (e.contender != o.contender) continue;
    for (const auto& [name, run] : e.workloads)
      if (name == o.workload) return run(o);
    throw std::invalid_argument(
      fmt::format("{} has no workload '{}'; --list shows all", o.contender, o.workload));
  }
  throw std::invalid_argument(fmt::format("no contender '{}'; --list shows all", o.contender));
}

inline int bench_main(int argc, char** argv, const std::vector<entry>& entries,
                      std::vector<std::pair<std::string, std::string>> libraries)
{
  try {
    const options o = parse_options(argc, argv);
    if (o.help) {
      fmt::print("{}", usage);
    } else if (o.list) {
      std::vector<std::pair<std::string, std::vector<std::string>>> lists;
      for (const auto& e : entries) {
        auto& names = lists.emplace_back(e.contender, std::vector<std::string>{}).second;
        for (const auto& w : e.workloads) names.push_back(w.first);
      }
      print_names(lists);
    } else if (o.versions) {
      auto versions = build_versions();
      versions.insert(versions.end(), libraries.begin(), libraries.end());
      print_versions(versions);
    } else {
      const idle_thread second;
      print_result(o, run_selected(o, entries));
      if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
      std::_Exit(0);
    }
    return 0;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fputs(fmt::format("{}: {}\n", argc ? argv[0] : "", e.what()).c_str(), stderr);
    std::fflush(stderr);
    std::_Exit(1);
  }
}

}  // namespace bench
