// Plays a script on a timing_wheel and on a model of it, a std::multimap.
#include <detail/wheel/timing_wheel.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "model/script.hpp"

namespace model {
namespace {

using namespace asio_wheel;
using namespace asio_wheel::detail;

struct entry : wheel_entry {
  explicit entry(int n) : id(n) {}
  int id;
  std::uint64_t inserted = 0;  ///< number of its latest insertion
};

bool inserted_before(const wheel_entry& a, const wheel_entry& b)
{
  return static_cast<const entry&>(a).inserted < static_cast<const entry&>(b).inserted;
}

/// A simple model of a wheel: entries ordered by tick, and within a tick by insertion.
class multimap_wheel {
public:
  explicit multimap_wheel(unsigned slot_bits) : slot_bits_(slot_bits) {}

  void insert(entry& e, tick when)
  {
    (when <= now_ ? overdue_ : filed_).emplace(when <= now_ ? tick{} : when, &e);
  }

  /// The `which`th entry in the order of ticks that is not due; nullptr if there is none.
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

  /// The `which`th due entry; nullptr if there is none.
  [[nodiscard]] entry* due(std::size_t which) const
  {
    return due_.empty() ? nullptr : due_[which % due_.size()];
  }
  void erase_due(entry& e) { std::erase(due_, &e); }

  /// Drains everything in the order of ticks, where a wheel drains slot by slot.
  void drain()
  {
    const auto take = [&](entry* e, tick when) {
      drained_.push_back({e, when, chunk::of(e->cell())->slot, drains_});
    };
    for (entry* e : due_) take(e, tick{});
    for (const auto& [when, e] : overdue_) take(e, when);
    for (const auto& [when, e] : filed_) take(e, when);
    due_.clear();
    overdue_.clear();
    filed_.clear();
    ++drains_;
  }

  /// The `which`th drained entry; nullptr if there is none.
  [[nodiscard]] entry* drained(std::size_t which) const
  {
    return drained_.empty() ? nullptr : drained_[which % drained_.size()].e;
  }
  void erase_drained(entry& e)
  {
    std::erase_if(drained_, [&](const auto& x) { return x.e == &e; });
  }

  /// Whether a wheel may pop `e` before all other drained entries. Different ticks that came out of
  /// one slot have no order, and a finer level comes before a coarser one.
  [[nodiscard]] bool may_be_first_drained(const entry* e) const
  {
    const auto it = std::ranges::find(drained_, e, &drained_entry::e);
    return it != drained_.end() && std::all_of(drained_.begin(), it, [&](const auto& x) {
             const bool coarser = x.when != tick{} && level(x.slot) > level(it->slot);
             return x.drain == it->drain && (x.slot == it->slot || coarser) && x.when != it->when;
           });
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

  /// Filed entries stay under their ticks, and due ones stay due.
  void rewind(tick to) { now_ = to; }

  [[nodiscard]] entry* front_due() const { return due_.empty() ? nullptr : due_.front(); }
  void pop_due() { due_.pop_front(); }

  [[nodiscard]] tick now() const { return now_; }
  [[nodiscard]] std::size_t size() const
  {
    return filed_.size() + overdue_.size() + due_.size() + drained_.size();
  }
  [[nodiscard]] bool has_drained() const { return !drained_.empty(); }
  [[nodiscard]] bool empty() const { return filed_.empty() && overdue_.empty(); }

  /// No wheel may wake up later than this.
  [[nodiscard]] tick first_due() const
  {
    if (!overdue_.empty()) return now_;
    return filed_.empty() ? never : filed_.begin()->first;
  }

private:
  [[nodiscard]] std::uint32_t level(std::uint32_t slot) const { return slot >> slot_bits_; }

  const unsigned slot_bits_;
  std::multimap<tick, entry*> filed_;
  std::multimap<tick, entry*> overdue_;  // all under tick 0, in the order of insertion
  std::deque<entry*> due_;

  struct drained_entry {
    entry* e;
    tick when;           ///< 0 if it was due or overdue
    std::uint32_t slot;  ///< the one it was in
    int drain;           ///< which drain() took it
  };
  std::deque<drained_entry> drained_;
  int drains_ = 0;
  tick now_{};
};

/// Mostly small wheels: their corners are near, and check() looks at every slot.
wheel_geometry geometry_of(operands o)
{
  switch (o.take(8)) {
    case 0: return {.slot_bits = 3, .fan_bits = 3};
    case 1: return {.slot_bits = 10, .fan_bits = 8};
    case 2:
    case 3: return {.slot_bits = 8, .fan_bits = 6, .piece = 1};
    case 4: return {.slot_bits = 6, .fan_bits = 6};
    case 5: return {.slot_bits = 6, .fan_bits = 4, .piece = 1};
    case 6:
    case 7: return {.slot_bits = 4, .fan_bits = 2, .piece = 1};
    default: break;
  }
  const auto slot_bits = static_cast<unsigned>(1 + o.take(2));
  const auto fan_bits = static_cast<unsigned>(1 + o.take(2) % slot_bits);
  return {.slot_bits = slot_bits, .fan_bits = fan_bits, .piece = 1};
}

class wheel_run {
public:
  explicit wheel_run(wheel_geometry g) : wheel_(g), model_(g.slot_bits)
  {
    tell("{} bits of slots, {} of fan", g.slot_bits, g.fan_bits);
  }

  std::string play(script_view words)
  {
    for (const std::uint64_t word : words) {
      perform(operands(word));
      compare();
      if (!fault_.empty()) return fault_;
    }
    pop_everything();
    return fault_;
  }

private:
  void perform(operands o)
  {
    switch (o.take(5)) {
      default: return insert(ahead(o));
      case 7:
      case 8: return insert_many(o);
      case 9:
      case 10: return insert(o.take(2) == 0 ? never : tick{count(wheel_.now()) - o.take(2)});
      case 11:
      case 12:
      case 13: return erase_some<&wheel_run::erase_pending>(o, 1);
      case 14:
      case 15: return erase_some<&wheel_run::erase_pending>(o, o.take(5));
      case 16: return advance(wheel_.now() + o.take(2));
      case 17: return advance(ahead(o));
      case 18:
      case 19: return advance(wheel_.next_tick() ? *wheel_.next_tick() : never);
      case 20: return rewind(o.magnitude());
      case 21:
      case 22: return pop<&wheel_run::pop_due>(o.take(4));
      case 23: return refile<&wheel_run::pop_due>(o);
      case 24: return hasten(o);
      case 25: return erase_some<&wheel_run::erase_due>(o, 1);
      case 26: return erase_some<&wheel_run::erase_due>(o, o.take(5));
      case 27: return o.take(1) == 0 ? drain() : insert_many(o);
      case 28: return pop<&wheel_run::pop_drained>(o.take(4));
      case 29: return refile<&wheel_run::pop_drained>(o);
      case 30: return erase_some<&wheel_run::erase_drained>(o, 1);
      case 31: return erase_some<&wheel_run::erase_drained>(o, o.take(5));
    }
  }

  [[nodiscard]] tick ahead(operands& o) const { return wheel_.now() + o.magnitude(); }

  void insert(tick when)
  {
    if (when > never) when = {};  // the script meant a tick before 0
    entries_.push_back(std::make_unique<entry>(next_id_++));
    insert(*entries_.back(), when);
  }

  void insert(entry& e, tick when)
  {
    tell("insert {} at {}", e.id, count(when));
    e.inserted = insertions_++;
    // Whoever asks closes the vacant slot. So every other insertion goes without.
    const bool asks = insertions_ % 2 == 0;
    const maybe_tick before = asks ? wheel_.next_tick() : never;
    const maybe_tick wake = wheel_.insert(e, when);
    model_.insert(e, when);
    if (asks)
      expect(wheel_.next_tick() >= std::min(before, wake),
             "insert() kept to itself that next_tick() is earlier");
  }

  /// More than a chunk holds, and now and then more than a piece of a cascade.
  void insert_many(operands& o)
  {
    const tick first = ahead(o);
    const std::uint64_t stride = o.take(1);
    const std::uint64_t n = o.take(5) * (o.take(2) == 0 ? 4 : 1);
    for (std::uint64_t i = 0; i < n; ++i) insert(first + i * stride);
  }

  /// Erases `n` entries in a row, or some way apart. `Erase` erases the one with a given number.
  template <entry* (wheel_run::*Erase)(std::size_t)>
  void erase_some(operands& o, std::uint64_t n)
  {
    std::size_t which = o.take(16);
    const std::size_t stride = o.take(1) == 0 ? 0 : o.take(6);
    for (; n > 0; --n, which += stride) {
      const entry* const e = (this->*Erase)(which);
      if (!e) return;
      forget(e);
    }
  }

  entry* erase_pending(std::size_t which)
  {
    entry* const e = model_.pending(which);
    if (!e) return nullptr;
    tell("erase {}", e->id);
    expect(!wheel_.is_due(*e), "is_due() is wrong");
    model_.erase(*e);
    // Whoever asks closes the vacant slot. So every other erase goes without.
    const bool asks = which % 2 == 0;
    const maybe_tick before = asks ? wheel_.next_tick() : never;
    const std::uint32_t slot = slot_of(*e);
    const std::size_t capacity = wheel_.capacity();
    const maybe_tick unneeded = wheel_.erase(*e);
    expect(wheel_.capacity() == capacity, "erase() allocated");
    if (!asks) return e;
    expect(wheel_.next_tick() >= before, "erase() has made next_tick() earlier");
    const bool others = std::ranges::any_of(
      entries_, [&](const auto& other) { return other.get() != e && slot_of(*other) == slot; });
    expect(wheel_.next_tick() == before || unneeded <= before || others,
           "erase() kept to itself that next_tick() moved");
    expect(wheel_.next_tick() || unneeded, "erase() kept to itself that the wheel is empty");
    return e;
  }

  /// Where a filed entry is, or was before it left its slot.
  [[nodiscard]] static std::uint32_t slot_of(const entry& e) { return chunk::of(e.cell())->slot; }

  entry* erase_due(std::size_t which)
  {
    entry* const e = model_.due(which);
    if (!e) return nullptr;
    tell("erase {}, which is due", e->id);
    expect(wheel_.is_due(*e), "is_due() is wrong");
    model_.erase_due(*e);
    const std::size_t capacity = wheel_.capacity();
    expect(!wheel_.erase(*e), "erase() of a due entry named a tick");
    expect(wheel_.capacity() == capacity, "erase() of a due entry allocated");
    return e;
  }

  entry* erase_drained(std::size_t which)
  {
    entry* const e = model_.drained(which);
    if (!e) return nullptr;
    tell("erase {}, which was drained", e->id);
    model_.erase_drained(*e);
    const std::size_t capacity = wheel_.capacity();
    wheel_.erase_drained(*e);
    expect(wheel_.capacity() == capacity, "erase_drained() allocated");
    return e;
  }

  void drain()
  {
    tell("drain");
    model_.drain();
    const std::size_t capacity = wheel_.capacity();
    wheel_.drain();
    expect(wheel_.capacity() == capacity, "drain() allocated");
    expect(!wheel_.next_tick(), "drain() has left something to do");
  }

  void advance(tick to)
  {
    to = std::min(to, tick{count(never) - 1});
    tell("advance to {}", count(to));
    const maybe_tick next = wheel_.advance(to);
    model_.advance(to);
    expect(wheel_.next_tick() > to, "advance() has left something to do");
    expect(next == wheel_.next_tick(), "advance() has returned another tick than next_tick()");
  }

  void rewind(std::uint64_t by)
  {
    const tick to{count(wheel_.now()) - std::min(by, count(wheel_.now()))};
    tell("rewind to {}", count(to));
    const std::size_t capacity = wheel_.capacity();
    wheel_.rewind(to);
    model_.rewind(to);
    expect(wheel_.capacity() == capacity, "rewind() allocated");
  }

  template <entry* (wheel_run::*Pop)()>
  void pop(std::uint64_t n)
  {
    for (; n > 0; --n) {
      const entry* const e = (this->*Pop)();
      if (!e) return;
      forget(e);
    }
  }

  entry* pop_due()
  {
    entry* const expected = model_.front_due();
    auto* const e = static_cast<entry*>(wheel_.pop_due());
    tell("pop {}", e ? e->id : -1);
    expect(e == expected, "pop_due() took out another entry");
    if (expected) model_.pop_due();
    return expected;
  }

  entry* pop_drained()
  {
    auto* const e = static_cast<entry*>(wheel_.pop_drained());
    if (!e || !model_.may_be_first_drained(e)) {
      expect(!e && !model_.has_drained(), "pop_drained() took out another entry, or none");
      return nullptr;
    }
    tell("pop {}, which was drained", e->id);
    model_.erase_drained(*e);
    return e;
  }

  /// Moves the deadline of a wait: pops it, and files it again at once.
  template <entry* (wheel_run::*Pop)()>
  void refile(operands& o)
  {
    const std::size_t capacity = wheel_.capacity();
    if (entry* const e = (this->*Pop)()) insert(*e, ahead(o));
    expect(wheel_.capacity() == capacity, "to file again what was popped, it allocated");
  }

  /// The same for a wait that is not due.
  void hasten(operands& o)
  {
    const std::size_t capacity = wheel_.capacity();
    if (entry* const e = erase_pending(o.take(16))) insert(*e, ahead(o));
    expect(wheel_.capacity() == capacity, "to file again what was erased, it allocated");
  }

  /// Ends a script: checks the order of everything that is left.
  void pop_everything()
  {
    while (fault_.empty() && model_.front_due()) pop<&wheel_run::pop_due>(1);
    drain();
    while (fault_.empty() && model_.has_drained()) pop<&wheel_run::pop_drained>(1);
    compare();
  }

  void forget(const entry* e)
  {
    std::erase_if(entries_, [&](const auto& each) { return each.get() == e; });
  }

  void compare()
  {
    expect(wheel_.now() == model_.now(), "now() is wrong");
    expect(wheel_.size() == model_.size(), "size() is wrong");
    expect(wheel_.front_due() == model_.front_due(), "front_due() is wrong");
    expect(wheel_.has_due() == (model_.front_due() != nullptr), "has_due() is wrong");
    expect(wheel_.has_drained() == model_.has_drained(), "has_drained() is wrong");
    if (fault_.empty()) fault_ = wheel_.check(inserted_before);
    if (++comparisons_ % 4 != 0) return;  // these would close the vacant slot each time
    if (model_.empty())
      expect(!wheel_.next_tick(), "next_tick() finds something in an empty wheel");
    else
      expect(wheel_.next_tick() <= model_.first_due(), "next_tick() is too late");
    expect(wheel_.next_tick() >= wheel_.now(), "next_tick() is past");
  }

  void expect(bool ok, const char* otherwise)
  {
    if (!ok && fault_.empty()) fault_ = otherwise;
  }

  timing_wheel wheel_;
  multimap_wheel model_;
  std::vector<std::unique_ptr<entry>> entries_;
  int next_id_ = 0;
  std::uint64_t insertions_ = 0;
  std::uint64_t comparisons_ = 0;
  std::string fault_;
};

}  // namespace

std::string play_on_wheel(script_view words)
{
  const operands first = take_first(words);
  return wheel_run(geometry_of(first)).play(words);
}

}  // namespace model
