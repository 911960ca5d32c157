// Plays a script on a timing_wheel, and on a std::multimap beside it.
#include <asio_wheel/wheel/timing_wheel.hpp>

#include <deque>
#include <map>
#include <memory>
#include <memory_resource>

#include "model/script.hpp"

namespace model {
namespace {

using namespace asio_wheel;

struct entry : wheel_entry {
  explicit entry(int n) : id(n) {}
  int id;
};

/// What a wheel should do, in the plainest terms: entries by tick, and by insertion within one.
class multimap_wheel {
public:
  void insert(entry& e, tick when)
  {
    (when <= now_ ? overdue_ : filed_).emplace(when <= now_ ? tick{} : when, &e);
  }

  /// The entry that was filed `which`th in order of ticks and is not due; nullptr if there is none.
  [[nodiscard]] entry* pending(std::size_t which) const
  {
    const std::size_t n = filed_.size() + overdue_.size();
    if (n == 0) return nullptr;
    which %= n;
    const auto& part = which < overdue_.size() ? overdue_ : filed_;
    if (which >= overdue_.size()) which -= overdue_.size();
    return std::next(part.begin(), static_cast<std::ptrdiff_t>(which))->second;
  }

  void erase(entry& e)
  {
    const auto is_it = [&](const auto& x) { return x.second == &e; };
    if (std::erase_if(filed_, is_it) == 0) std::erase_if(overdue_, is_it);
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

  [[nodiscard]] entry* front_due() const { return due_.empty() ? nullptr : due_.front(); }
  void pop_due() { due_.pop_front(); }

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

/// Counts what a wheel asks for.
class counted_memory : public std::pmr::memory_resource {
public:
  std::size_t allocations = 0;

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override
  {
    ++allocations;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override
  {
    std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override
  {
    return this == &other;
  }
};

/// Mostly small wheels, for the sake of their corners, and because check() looks at every slot.
wheel_geometry geometry_of(operands o)
{
  switch (o.take(8)) {
    case 0: return {.slot_bits = 3, .fan_bits = 3, .levels = 2};
    case 1: return {.slot_bits = 10, .fan_bits = 8, .levels = 0};
    case 2:
    case 3: return {.slot_bits = 8, .fan_bits = 6, .levels = 3};
    case 4:
    case 5: return {.slot_bits = 6, .fan_bits = 6, .levels = 0};
    case 6:
    case 7: return {.slot_bits = 4, .fan_bits = 2, .levels = 0};
    default: break;
  }
  const auto slot_bits = static_cast<unsigned>(1 + o.take(2));
  const auto fan_bits = static_cast<unsigned>(1 + o.take(2) % slot_bits);
  return {
    .slot_bits = slot_bits, .fan_bits = fan_bits, .levels = static_cast<unsigned>(1 + o.take(2))};
}

/// How far a script may go at once: beyond the last level there is the overflow queue, which is
/// gone through every time its horizon moves.
std::uint64_t limit_of(wheel_geometry g)
{
  constexpr unsigned beyond = 4;
  return g.levels == 0 ? count(never)
                       : std::uint64_t{1} << (g.slot_bits + (g.levels - 1) * g.fan_bits + beyond);
}

class wheel_run {
public:
  explicit wheel_run(wheel_geometry g) : limit_(limit_of(g)), wheel_(g, memory_)
  {
    tell("{} bits of slots, {} of fan, {} levels", g.slot_bits, g.fan_bits, g.levels);
  }

  std::string play(script_view words)
  {
    for (const std::uint64_t word : words) {
      perform(operands(word));
      compare();
      if (!fault_.empty()) break;
    }
    return fault_;
  }

private:
  void perform(operands o)
  {
    switch (o.take(4)) {
      case 0:
      case 1:
      case 2:
      case 3: return insert(ahead(o));
      case 4: return insert_many(o);
      case 5: return insert(o.take(2) == 0 ? never : tick{count(wheel_.now()) - o.take(2)});
      case 6:
      case 7: return erase(o.take(16), 1);
      case 8: return erase(o.take(16), o.take(5));
      case 9: return advance(wheel_.now() + o.take(2));
      case 10: return advance(ahead(o));
      case 11: return advance(wheel_.next_tick());
      case 12: return rewind(o.magnitude());
      case 13: return pop(o.take(4));
      case 14: return refile(o);
      default: return hasten(o);
    }
  }

  [[nodiscard]] tick ahead(operands& o) const { return wheel_.now() + o.magnitude() % limit_; }

  void insert(tick when)
  {
    if (when > never) when = {};  // it was meant to lie before tick 0
    entries_.push_back(std::make_unique<entry>(next_id_++));
    insert(*entries_.back(), when);
  }

  void insert(entry& e, tick when)
  {
    tell("insert {} at {}", e.id, count(when));
    wheel_.insert(e, when);
    model_.insert(e, when);
  }

  /// More than a chunk holds.
  void insert_many(operands& o)
  {
    const tick first = ahead(o);
    const std::uint64_t stride = o.take(1);
    for (std::uint64_t n = o.take(5), i = 0; i < n; ++i) insert(first + i * stride);
  }

  void erase(std::size_t which, std::uint64_t n)
  {
    for (; n > 0; --n) {
      entry* const e = model_.pending(which);
      if (!e) return;
      erase(*e);
      std::erase_if(entries_, [&](const auto& each) { return each.get() == e; });
    }
  }

  void erase(entry& e)
  {
    tell("erase {}", e.id);
    expect(!wheel_.is_due(e), "is_due() is wrong");
    model_.erase(e);
    const tick before = wheel_.next_tick();
    const tick unneeded = wheel_.erase(e);
    expect(wheel_.next_tick() == before || unneeded == before,
           "erase() kept to itself that next_tick() moved");
    expect(!wheel_.empty() || unneeded != no_tick,
           "erase() kept to itself that the wheel is empty");
  }

  void advance(tick to)
  {
    to = std::min(to, tick{count(never) - 1});
    tell("advance to {}", count(to));
    wheel_.advance(to);
    model_.advance(to);
    expect(wheel_.next_tick() > to, "advance() has left something to do");
  }

  void rewind(std::uint64_t by)
  {
    const tick to{count(wheel_.now()) - std::min(by, count(wheel_.now()))};
    tell("rewind to {}", count(to));
    const std::size_t allocations = memory_.allocations;
    wheel_.rewind(to);
    model_.rewind(to);
    expect(memory_.allocations == allocations, "rewind() allocated");
  }

  void pop(std::uint64_t n)
  {
    for (; n > 0 && model_.front_due(); --n) {
      entry* const e = pop();
      std::erase_if(entries_, [&](const auto& each) { return each.get() == e; });
    }
  }

  entry* pop()
  {
    entry* const expected = model_.front_due();
    auto* const e = static_cast<entry*>(wheel_.pop_due());
    tell("pop {}", e ? e->id : -1);
    expect(e == expected, "pop_due() took out another entry");
    if (expected) model_.pop_due();
    return expected;
  }

  /// What becomes of a wait whose deadline has moved: it is due, and filed again on the spot.
  void refile(operands& o)
  {
    const std::size_t allocations = memory_.allocations;
    if (entry* const e = pop()) insert(*e, ahead(o));
    expect(memory_.allocations == allocations, "to file again what was popped, it allocated");
  }

  /// The same for one that is not due.
  void hasten(operands& o)
  {
    entry* const e = model_.pending(o.take(16));
    if (!e) return;
    const std::size_t allocations = memory_.allocations;
    erase(*e);
    insert(*e, ahead(o));
    expect(memory_.allocations == allocations, "to file again what was erased, it allocated");
  }

  void compare()
  {
    expect(wheel_.now() == model_.now(), "now() is wrong");
    expect(wheel_.size() == model_.size(), "size() is wrong");
    expect(wheel_.empty() == model_.empty(), "empty() is wrong");
    expect((wheel_.front() == nullptr) == model_.empty(), "front() is wrong");
    expect(wheel_.front_due() == model_.front_due(), "front_due() is wrong");
    expect(wheel_.next_tick() <= model_.first_due(), "next_tick() is too late");
    expect(wheel_.next_tick() >= wheel_.now(), "next_tick() is past");
    if (fault_.empty()) fault_ = wheel_.check();
  }

  void expect(bool ok, const char* otherwise)
  {
    if (!ok && fault_.empty()) fault_ = otherwise;
  }

  const std::uint64_t limit_;
  counted_memory memory_;
  timing_wheel wheel_;
  multimap_wheel model_;
  std::vector<std::unique_ptr<entry>> entries_;
  int next_id_ = 0;
  std::string fault_;
};

}  // namespace

std::string play_on_wheel(script_view words)
{
  const operands first = take_first(words);
  return wheel_run(geometry_of(first)).play(words);
}

}  // namespace model
