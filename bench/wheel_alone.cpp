// The wheel alone, in virtual time and without Asio, against other timer structures and the floor.
//   wheel       asio_wheel::detail::timing_wheel
//   multimap    std::multimap<tick, entry*>, the iterator kept in the entry
//   d_ary_heap  boost::heap::d_ary_heap, 4-ary, mutable, the handle kept in the entry
//   pairing     boost::heap::pairing_heap
//   floor       the memory accesses no structure can do without.
//               churn: unlink a random 64-byte node and push it on a random list;
//               expire: write an array of pointers, read it and, prefetching, what it points to
//   floor_list  expire: walk a list whose nodes lie at random
// One thread computes, another sleeps; entries of 64 bytes; ticks of 1 ms; delays uniform over
// 1..60 s.
//   insert   file n entries: ns per entry
//   churn    erase a random entry and file it again: ns per step; 5,000 steps to a tick; due
//   entries
//            are filed again
//   expire   one advance per tick until nothing is left, each due entry read: ns per entry
//   worst    the same with the clock read around each advance: the longest advance, with and
//   without
//            reading its due entries, how many these were, and the longest after subtracting the
//            mean cost of its due entries
//   worst_far, worst_slot, worst_tick
//            the same with delays that a wheel has to move in bulk: uniform over 300..360 s; within
//            256 ticks, which is one slot of level 1; all on tick 262,144, where slots of three
//            levels begin
//   empty    advance an empty structure by a tick: ns per advance
//   jump     advance by an hour when the only entry is years away: ns per jump
#include <boost/version.hpp>

#include "structures.hpp"
#include "workloads.hpp"

namespace {

using namespace bench;

constexpr std::uint64_t steps_per_tick = 5'000;

struct delays {
  ticks first, last;

  ticks random(random_numbers& numbers) const { return first + numbers.below(last - first); }
};

constexpr delays usual{1'000, 60'000}, far{300'000, 360'000}, one_slot{300'032, 300'288},
  one_tick{262'144, 262'145};

// Keeps the optimiser from removing the reads.
volatile std::uint64_t sink;

template <class Structure>
class alone {
public:
  explicit alone(const options& o) : options_{o}, random_{o.seed}, structure_{o} {}

  void fill(delays d = usual)
  {
    for (std::size_t i = 0; i < options_.n; ++i) structure_.insert(i, d.random(random_));
  }

  metrics insert()
  {
    const auto cpu = thread_cpu();
    fill();
    return {{"cpu_ns", ns_per(thread_cpu() - cpu, options_.n)}};
  }

  metrics churn()
  {
    fill();
    churn_steps(options_.n);
    expired_ = 0;
    const auto cpu = thread_cpu();
    churn_steps(options_.steps);
    return {{"cpu_ns", ns_per(thread_cpu() - cpu, options_.steps)},
            {"expired", static_cast<double>(expired_)}};
  }

  metrics expire()
  {
    fill();
    const auto cpu = thread_cpu();
    for (ticks t = 1; t <= usual.last; ++t) advance(t);
    return {{"cpu_ns", ns_per(thread_cpu() - cpu, options_.n)}};
  }

  metrics worst() { return longest_advance(usual); }
  metrics worst_far() { return longest_advance(far); }
  metrics worst_slot() { return longest_advance(one_slot); }
  metrics worst_tick() { return longest_advance(one_tick); }

  metrics empty() { return advance_by(1); }

  metrics jump()
  {
    structure_.insert(0, ticks{1} << 40);
    return advance_by(3'600'000);
  }

private:
  void advance(ticks to)
  {
    structure_.advance(to);
    read_due();
  }

  void read_due()
  {
    structure_.take_due([this](auto& entry) {
      sum_ += entry.payload;
      ++expired_;
    });
    sink = sum_;
  }

  metrics longest_advance(delays d)
  {
    struct advanced {
      nanoseconds alone, took;
      std::uint64_t due;
    };
    fill(d);
    std::vector<advanced> all;
    all.reserve(d.last);
    auto before = thread_cpu();
    const auto begin = before;
    for (ticks t = 1; t <= d.last; ++t) {
      expired_ = 0;
      structure_.advance(t);
      const auto moved = thread_cpu();
      read_due();
      const auto now = thread_cpu();
      all.push_back({moved - before, now - before, expired_});
      before = now;
    }
    const double per_entry = ns_per(before - begin, options_.n);
    const auto beyond_due = [&](const advanced& a) {
      return static_cast<double>(a.took.count()) - per_entry * static_cast<double>(a.due);
    };
    const auto slowest = *std::ranges::max_element(all, {}, &advanced::took);
    const auto excess = std::ranges::max(all, {}, beyond_due);
    return {{"advance_us", micros(std::ranges::max(all, {}, &advanced::alone).alone)},
            {"worst_us", micros(slowest.took)},
            {"due_in_it", static_cast<double>(slowest.due)},
            {"beyond_due_us", beyond_due(excess) / 1e3}};
  }

  void churn_steps(std::uint64_t steps)
  {
    for (std::uint64_t s = 1; s <= steps; ++s) {
      const auto i = static_cast<std::size_t>(random_.below(options_.n));
      structure_.erase(i);
      structure_.insert(i, now_ + usual.random(random_));
      if (s % steps_per_tick != 0) continue;
      ++now_;
      due_.clear();
      structure_.advance(now_);
      structure_.take_due([this](auto& entry) { due_.push_back(structure_.index_of(entry)); });
      for (const auto due : due_) structure_.insert(due, now_ + usual.random(random_));
      expired_ += due_.size();
    }
  }

  // No more than 2^40 ticks in all, so that the far entry stays far.
  metrics advance_by(ticks stride)
  {
    const std::uint64_t times = stride == 1 ? 10'000'000 : 200'000;
    const auto cpu = thread_cpu();
    for (std::uint64_t i = 0; i < times; ++i) advance(now_ += stride);
    return {{"cpu_ns", ns_per(thread_cpu() - cpu, times)}};
  }

  options options_;
  random_numbers random_;
  Structure structure_;
  ticks now_ = 0;
  std::vector<std::size_t> due_;
  std::uint64_t expired_ = 0, sum_ = 0;
};

template <class Structure, metrics (alone<Structure>::*Workload)()>
metrics run_alone(const options& o)
{
  return ((new alone<Structure>{o})->*Workload)();
}

template <class S>
entry structure(const char* name)
{
  return {name,
          {{"insert", run_alone<S, &alone<S>::insert>},
           {"churn", run_alone<S, &alone<S>::churn>},
           {"expire", run_alone<S, &alone<S>::expire>},
           {"worst", run_alone<S, &alone<S>::worst>},
           {"worst_far", run_alone<S, &alone<S>::worst_far>},
           {"worst_slot", run_alone<S, &alone<S>::worst_slot>},
           {"worst_tick", run_alone<S, &alone<S>::worst_tick>},
           {"empty", run_alone<S, &alone<S>::empty>},
           {"jump", run_alone<S, &alone<S>::jump>}}};
}

metrics floor_churn(const options& o)
{
  random_numbers random{o.seed};
  auto& lists = *new list_floor{o};
  for (std::size_t i = 0; i < o.n; ++i) lists.push(i, random.below(list_floor::heads));
  const auto steps = [&](std::uint64_t n) {
    for (std::uint64_t s = 0; s < n; ++s) {
      const auto i = static_cast<std::size_t>(random.below(o.n));
      lists.unlink(i);
      lists.push(i, random.below(list_floor::heads));
    }
  };
  steps(o.n);
  const auto cpu = thread_cpu();
  steps(o.steps);
  return {{"cpu_ns", ns_per(thread_cpu() - cpu, o.steps)}};
}

metrics floor_expire(const options& o)
{
  constexpr std::size_t ahead = 16;
  random_numbers random{o.seed};
  auto& lists = *new list_floor{o};
  std::vector<std::uint32_t> order(o.n);
  for (std::size_t i = 0; i < o.n; ++i) order[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = o.n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<list_floor::entry*> pointers(o.n);

  const auto cpu = thread_cpu();
  for (std::size_t i = 0; i < o.n; ++i) pointers[i] = &lists[order[i]];
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < o.n; ++i) {
    if (i + ahead < o.n) __builtin_prefetch(pointers[i + ahead]);
    sum += pointers[i]->payload;
  }
  sink = sum;
  return {{"cpu_ns", ns_per(thread_cpu() - cpu, o.n)}};
}

metrics floor_list_expire(const options& o)
{
  random_numbers random{o.seed};
  auto& lists = *new list_floor{o};
  // Pushed in order and moved at random, so neighbours on a list lie far apart in memory.
  for (std::size_t i = 0; i < o.n; ++i) lists.push(i, 0);
  for (std::size_t s = 0; s < 2 * o.n; ++s) {
    const auto i = static_cast<std::size_t>(random.below(o.n));
    lists.unlink(i);
    lists.push(i, random.below(list_floor::heads));
  }
  const auto cpu = thread_cpu();
  std::uint64_t sum = 0;
  lists.walk([&](list_floor::entry& e) { sum += e.payload; });
  sink = sum;
  return {{"cpu_ns", ns_per(thread_cpu() - cpu, o.n)}};
}

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(
    argc, argv,
    {structure<wheel_structure>("wheel"), structure<multimap_structure>("multimap"),
     structure<d_ary_structure>("d_ary_heap"), structure<pairing_structure>("pairing"),
     entry{"floor", {{"churn", floor_churn}, {"expire", floor_expire}}},
     entry{"floor_list", {{"expire", floor_list_expire}}}},
    {{"boost", BOOST_LIB_VERSION}});
}
