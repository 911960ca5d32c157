// L2 engine: who waits, found out while waits start and end. Linked only if used.
#include <asio_wheel/wheel_timer_service.hpp>

#include "detail/engine/core.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace asio_wheel {
namespace {

using namespace detail;

std::string demangled(const std::type_info& type)
{
#if __has_include(<cxxabi.h>)
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
    abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  if (name) return name.get();
#endif
  return type.name();
}

// A survey takes the lock of a shard for one piece of its waits after the other. A piece takes a
// few microseconds. Then the survey keeps away for as long as it had the lock, so that half of the
// time a waiting thread finds the lock free.
//
// While nothing moves, every wait is counted once. A wait that moves during the survey may be
// missed or counted twice: a cascade files it ahead of the walk, a watchdog's move behind it.
//
// Waits on the way to their handlers' own executors are in nobody's list, and are not found.

constexpr std::size_t at_a_time = 64;

struct sighting {
  const std::type_info* handler;
  time_point expiry;
};

/// Asks a wait for its handler's type and expiry.
sighting ask(shard& sh, wait_op& op) ASIO_WHEEL_REQUIRES(sh)
{
  op.ask(sh, wait_request::describe());
  return {sh.described(), sh.expiry_of(op)};
}

class tally {
public:
  using row = pending_handlers::row;

  void add(const sighting& s) { add(rows_[s.handler], {{}, 1, s.expiry, s.expiry}); }

  [[nodiscard]] std::vector<row> rows() const
  {
    // Two shared libraries may have two objects for one type.
    std::map<std::string, row> by_name;
    for (const auto& [type, found] : rows_)
      add(by_name[type ? demangled(*type) : "(compiled without RTTI)"], found);
    std::vector<row> rows;
    rows.reserve(by_name.size());
    for (auto& [name, found] : by_name) {
      found.handler = name;
      rows.push_back(std::move(found));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const row& a, const row& b) { return a.count > b.count; });
    return rows;
  }

private:
  /// Adds the waits of `part` to `whole`.
  static void add(row& whole, const row& part)
  {
    whole.earliest = whole.count == 0 ? part.earliest : std::min(whole.earliest, part.earliest);
    whole.latest = whole.count == 0 ? part.latest : std::max(whole.latest, part.latest);
    whole.count += part.count;
  }

  std::unordered_map<const std::type_info*, row> rows_;
};

/// Puts the next piece of a shard into `seen`. Returns how many waits.
[[gnu::cold]] std::size_t survey_piece(shard& sh, wheel_walk& way,
                                       std::array<sighting, at_a_time>& seen) noexcept
{
  std::array<wheel_entry*, at_a_time> found;
  const locked lock(sh);
  const std::size_t n = sh.walk(way, found);
  std::size_t pending = 0;
  for (std::size_t i = 0; i < n; ++i) {
    auto& op = static_cast<wait_op&>(*found[i]);
    if (!sh.is_all_cancelled(op)) seen[pending++] = ask(sh, op);
  }
  return pending;
}

/// Walks through the first slot of a level, and moves `earliest` to earlier ticks. Returns true if
/// the wheel has not moved meanwhile: if it has, waits may have moved to slots behind the walk.
[[gnu::cold]] bool survey_slot(shard& sh, unsigned level, tick& earliest) noexcept
  ASIO_WHEEL_REQUIRES(sh)
{
  timing_wheel& wheel = sh.wheel();
  const tick now = wheel.now();
  const tick first = wheel.first_tick(level);
  std::array<wheel_entry*, at_a_time> found;
  for (wheel_walk way = wheel.begin_walk_of_first(level); !way.has_ended();) {
    const std::size_t n = sh.walk(way, found);
    for (std::size_t i = 0; i < n; ++i) earliest = std::min(earliest, found[i]->due());
    sh.unlock();
    std::this_thread::yield();
    sh.lock();
    sh.apply_deferred_cancels();
    if (wheel.now() != now || wheel.first_tick(level) != first) return false;
  }
  return true;
}

/// The earliest tick in the wheel of a shard; `never` if the wheel is empty, or nothing in it ever
/// expires.
[[gnu::cold]] tick earliest_tick(shard& sh) noexcept
{
  const locked lock(sh);
  timing_wheel& wheel = sh.wheel();
  tick earliest = never;
  // If the wheel keeps moving, the tick of any wait will do.
  bool moved = true;
  for (int attempts = 0; moved && attempts < 10; ++attempts) {
    const cancels_applied applied = sh.apply_deferred_cancels();
    if (sh.has_due(applied)) return sh.first_due(applied).due;
    moved = false;
    earliest = wheel.first_tick(0);
    for (unsigned level = 1; level < wheel.levels() && !moved; ++level) {
      if (wheel.first_tick(level) < earliest) moved = !survey_slot(sh, level, earliest);
    }
  }
  return earliest;
}

}  // namespace

[[gnu::cold]] pending_handlers wheel_timer_service::pending_by_handler() const
{
  std::array<sighting, at_a_time> seen;
  tally found;
  const std::lock_guard one(core_->survey_mutex);
  const time_point read_at = now();
  for (shard& sh : core_->shards) {
    core_->erase_resting(sh);
    tell_driver(sh);
    for (wheel_walk way = sh.begin_walk(); !way.has_ended();) {
      const auto begin = clock_type::now();
      const std::size_t n = survey_piece(sh, way, seen);
      const auto end = clock_type::now();
      for (std::size_t i = 0; i < n; ++i) found.add(seen[i]);
      while (clock_type::now() - end < end - begin) std::this_thread::yield();
    }
  }
  return {found.rows(), read_at};
}

[[gnu::cold]] std::optional<wheel_timer_service::time_point> wheel_timer_service::next_expiry()
  const
{
  const std::lock_guard one(core_->survey_mutex);
  tick first = never;
  for (shard& sh : core_->shards) {
    core_->erase_resting(sh);
    tell_driver(sh);
    first = std::min(first, earliest_tick(sh));
  }
  // The latest deadlines round up to a time that never comes.
  const time_point at = core_->clock.time_of(first);
  if (at == time_point::max()) return std::nullopt;
  return at;
}

}  // namespace asio_wheel
