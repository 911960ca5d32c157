// The workloads of programs that measure event-loop timers.
#pragma once

#include <vector>

#include "command_line.hpp"
#include "contender.hpp"
#include "work_churn.hpp"
#include "work_expire.hpp"
#include "work_pending.hpp"

namespace bench {

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

template <class... Contenders>
std::vector<entry> contenders()
{
  return {entry{Contenders::name, workloads_of<Contenders>()}...};
}

}  // namespace bench
