// Model check of timing_wheel: random scripts of operations against a std::multimap.
#include <asio_wheel/wheel/timing_wheel.hpp>

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace asio_wheel;

struct entry : wheel_entry {
  int id = 0;
};

/// What a wheel should do, in the plainest terms: entries by tick, and by insertion within one.
class model {
public:
  void insert(entry& e, tick when)
  {
    (when <= now_ ? overdue_ : filed_).emplace(when <= now_ ? tick{} : when, &e);
  }

  void erase(entry& e)
  {
    for (auto* part : {&filed_, &overdue_}) {
      const auto it =
        std::find_if(part->begin(), part->end(), [&](const auto& x) { return x.second == &e; });
      if (it != part->end()) return static_cast<void>(part->erase(it));
    }
  }

  void advance(tick to)
  {
    for (const auto& [when, e] : overdue_) due_.push_back(e);
    overdue_.clear();
    const auto end = filed_.upper_bound(to);
    for (auto it = filed_.begin(); it != end; ++it) due_.push_back(it->second);
    filed_.erase(filed_.begin(), end);
    now_ = to;
  }

  /// What is filed stays filed under its tick, and what is due stays due.
  void rewind(tick to) { now_ = to; }

  entry* pop_due()
  {
    if (due_.empty()) return nullptr;
    entry* e = due_.front();
    due_.pop_front();
    return e;
  }

  [[nodiscard]] tick now() const { return now_; }
  [[nodiscard]] std::size_t size() const { return filed_.size() + overdue_.size() + due_.size(); }
  [[nodiscard]] bool empty() const { return filed_.empty() && overdue_.empty(); }

  /// No wheel may wake up later than this.
  [[nodiscard]] tick first_due() const
  {
    if (!overdue_.empty()) return now_;
    return filed_.empty() ? never : filed_.begin()->first;
  }

private:
  std::multimap<tick, entry*> filed_;
  std::multimap<tick, entry*> overdue_;  // all under tick 0: their order is that of insertion
  std::deque<entry*> due_;
  tick now_{};
};

/// One run of a script: decodes words into operations on a wheel and its model.
class run {
public:
  explicit run(wheel_geometry geometry) : wheel_(geometry) {}

  /// Says how wheel and model differ after the script; empty if they do not.
  std::string play(const std::vector<std::uint32_t>& script)
  {
    for (const std::uint32_t word : script) {
      if (std::string broken = step(word); !broken.empty()) return broken;
    }
    return {};
  }

private:
  std::string step(std::uint32_t word)
  {
    const std::uint32_t operand = word >> 4;
    switch (word & 15) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: insert(count(wheel_.now()) + near_or_far(operand)); break;
      case 6: insert(operand % 4 == 0 ? count(never) : count(wheel_.now()) - operand % 3); break;
      case 7:
      case 8:
      case 9:
      case 10: erase(operand); break;
      case 11: advance(count(wheel_.now()) + operand % 4); break;
      case 12: advance(count(wheel_.now()) + near_or_far(operand)); break;
      case 13:
        if (wheel_.next_tick() < tick{std::uint64_t{1} << 62}) advance(count(wheel_.next_tick()));
        break;
      case 14: rewind(std::min(near_or_far(operand) % 4096, count(wheel_.now()))); break;
      default:
        if (std::string broken = pop(operand % 8); !broken.empty()) return broken;
    }
    return compare();
  }

  /// Small distances and large ones equally often, on every level.
  static std::uint64_t near_or_far(std::uint32_t operand)
  {
    return std::uint64_t{operand >> 5} % ((std::uint64_t{1} << (operand & 31)) + 1);
  }

  void insert(std::uint64_t when)
  {
    if (when > count(never)) when = 0;  // an overdue one before tick 0
    auto e = std::make_unique<entry>();
    e->id = next_id_++;
    wheel_.insert(*e, tick{when});
    model_.insert(*e, tick{when});
    entries_.push_back(std::move(e));
  }

  void erase(std::uint32_t which)
  {
    std::vector<std::size_t> pending;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (!wheel_.is_due(*entries_[i])) pending.push_back(i);
    if (pending.empty()) return;
    const std::size_t i = pending[which % pending.size()];
    model_.erase(*entries_[i]);
    const tick before = wheel_.next_tick();
    const tick unneeded = wheel_.erase(*entries_[i]);
    if (wheel_.next_tick() != before && unneeded != before) unexplained_ = true;
    if (wheel_.empty() && unneeded == no_tick) unexplained_ = true;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void advance(std::uint64_t to)
  {
    wheel_.advance(tick{to});
    model_.advance(tick{to});
  }

  void rewind(std::uint64_t by)
  {
    const tick to{count(wheel_.now()) - by};
    wheel_.rewind(to);
    model_.rewind(to);
  }

  std::string pop(std::uint32_t n)
  {
    for (; n > 0; --n) {
      auto* got = static_cast<entry*>(wheel_.pop_due());
      entry* expected = model_.pop_due();
      if (got != expected)
        return fmt::format("due: entry {} instead of {}", got ? got->id : -1,
                           expected ? expected->id : -1);
      std::erase_if(entries_, [&](const auto& e) { return e.get() == got; });
    }
    return {};
  }

  std::string compare()
  {
    if (std::string broken = wheel_.check(); !broken.empty()) return broken;
    if (wheel_.size() != model_.size())
      return fmt::format("size() is {} instead of {}", wheel_.size(), model_.size());
    if (wheel_.empty() != model_.empty()) return "empty() is wrong";
    if ((wheel_.front() == nullptr) != model_.empty()) return "front() is wrong";
    if (wheel_.next_tick() > model_.first_due())
      return fmt::format("next_tick() is {}, but an entry is due at {}", count(wheel_.next_tick()),
                         count(model_.first_due()));
    if (unexplained_) return "erase() kept to itself that next_tick() moved";
    return {};
  }

  timing_wheel wheel_;
  model model_;
  std::vector<std::unique_ptr<entry>> entries_;
  int next_id_ = 0;
  bool unexplained_ = false;
};

/// The shortest script still failing that leaving out pieces leads to.
std::vector<std::uint32_t> shorten(wheel_geometry geometry, std::vector<std::uint32_t> script)
{
  for (std::size_t piece = script.size() / 2; piece > 0; piece /= 2) {
    for (std::size_t from = 0; from + piece <= script.size();) {
      auto shorter = script;
      const auto begin = shorter.begin() + static_cast<std::ptrdiff_t>(from);
      shorter.erase(begin, begin + static_cast<std::ptrdiff_t>(piece));
      if (run(geometry).play(shorter).empty())
        from += piece;
      else
        script = std::move(shorter);
    }
  }
  return script;
}

constexpr wheel_geometry geometries[] = {
  {.slot_bits = 3, .fan_bits = 3, .levels = 2}, {.slot_bits = 3, .fan_bits = 1, .levels = 2},
  {.slot_bits = 1, .fan_bits = 1, .levels = 3}, {.slot_bits = 3, .fan_bits = 2, .levels = 4},
  {.slot_bits = 4, .fan_bits = 2, .levels = 0}, {.slot_bits = 6, .fan_bits = 6, .levels = 0},
  {.slot_bits = 8, .fan_bits = 6, .levels = 3}, {.slot_bits = 10, .fan_bits = 8, .levels = 0},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(timing_wheel_model)

BOOST_AUTO_TEST_CASE(does_what_a_multimap_does)
{
  constexpr std::size_t length = 300;
  for (const wheel_geometry& geometry : geometries) {
    // After every step, check() walks all the slots.
    const std::uint32_t scripts = geometry.levels == 0 ? 4 : 60;
    for (std::uint32_t seed = 0; seed < scripts; ++seed) {
      std::mt19937 random(seed);
      std::vector<std::uint32_t> script(length);
      std::generate(script.begin(), script.end(), std::ref(random));
      const std::string broken = run(geometry).play(script);
      if (broken.empty()) continue;

      const auto shortest = shorten(geometry, script);
      BOOST_TEST(false,
                 fmt::format("{} bits of slots, {} of fan, {} levels, seed {}: {}; shortest "
                             "script {}: {}",
                             geometry.slot_bits, geometry.fan_bits, geometry.levels, seed, broken,
                             fmt::join(shortest, ", "), run(geometry).play(shortest)));
      return;
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
