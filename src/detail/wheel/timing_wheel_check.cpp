// L1 wheel: the proof of the invariants that timing_wheel.hpp names.

#include "timing_wheel.hpp"

#include <sstream>
#include <unordered_map>
#include <utility>

namespace asio_wheel::detail {
namespace {

template <class... Parts>
std::string say(const Parts&... parts)
{
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// Goes through queues one by one, and counts what they hold.
class queue_proof {
public:
  explicit queue_proof(std::uint32_t vacant_slot) : vacant(vacant_slot) {}

  const std::uint32_t vacant;
  std::size_t chunks = 0;
  std::size_t entries = 0;

  /// Returns the first error: in the links and counts of `queue`, or what `wrong` says of an entry
  /// in it. Skips the first `read` cells.
  template <class Wrong>
  std::string check(const chunk_queue& queue, std::size_t read, Wrong wrong)
  {
    const chunk* prev = nullptr;
    const std::size_t before = chunks;
    for (const chunk* c = queue.head; c; prev = c, c = c->next, read = 0) {
      ++chunks;
      if (c->prev != prev) return "chunks: broken link";
      std::size_t live = 0;
      for (std::size_t i = read; i < c->used; ++i) {
        const wheel_entry* const e = c->cells[i];
        if (!e) continue;
        ++live;
        if (e->cell() != &c->cells[i]) return "chunks: entry astray";
        if (std::string broken = wrong(*e, *c); !broken.empty()) return broken;
      }
      if (live != c->live) return say("chunks: one has ", live, " entries and says ", c->live);
      if (live == 0 && !(c->slot == vacant && queue.length == 1 && c->used == 0))
        return "chunks: one has no entry";
      entries += live;
    }
    if (chunks - before != queue.length) return "chunks: wrong length";
    return queue.tail == prev ? std::string{} : "chunks: wrong tail";
  }

  /// Starts the order anew: later entries have no predecessor among earlier entries.
  void clear_ticks() { last_of_tick_.clear(); }

  /// The entry of equal tick asked about before `e`, or nullptr. Ask once for every entry.
  const wheel_entry* predecessor(const wheel_entry& e)
  {
    return std::exchange(last_of_tick_[e.due()], &e);
  }

private:
  std::unordered_map<tick, const wheel_entry*> last_of_tick_;
};

}  // namespace

/// Returns true if an entry of tick `due` may be in `slot` because the cascade of `named` has
/// begun. `named` is the slot that the horizons name.
bool timing_wheel::is_ahead(tick due, std::uint32_t slot, std::uint32_t named) const noexcept
{
  const unsigned level = named >> slot_bits_;
  const unsigned finer = slot >> slot_bits_;
  return level < levels_ && finer < level && slot == slot_of(finer, due) &&
         count(span_begin(due, level * fan_bits_)) - count(now_) <= level * lead_;
}

std::string timing_wheel::check(bool (*inserted_before)(const wheel_entry&,
                                                        const wheel_entry&)) const
{
  // window
  for (unsigned level = 1; level <= levels_; ++level) {
    if (horizon_[level] <= now_ && now_ != never)
      return say("window: horizon(", level, ") is ", count(horizon_[level]), ", now is ",
                 count(now_));
    if (level > 1 && horizon_[level] < horizon_[level - 1])
      return say("window: horizon(", level, ") is before horizon(", level - 1, ")");
    const unsigned bits = (level - 1) * fan_bits_;
    const std::uint64_t slots_spanned =
      horizon_[level] != never
        ? (count(span_begin(horizon_[level], bits)) >> bits) - (count(now_) >> bits)
        : 0;
    if (slots_spanned > std::uint64_t{mask_} + 1)
      return say("window: level ", level - 1, " spans ", slots_spanned, " slots");
  }

  // placement, order, chunks
  queue_proof proof{vacant_};
  for (std::uint32_t slot = 0; slot <= never_slot_; ++slot) {
    const auto wrong = [&](const wheel_entry& e, const chunk& c) -> std::string {
      if (c.slot != slot) return say("chunks: one of slot ", c.slot);
      const std::uint32_t named = e.due() == overdue ? overdue_slot_
                                  : e.due() == never ? never_slot_
                                                     : slot_for(e.due());
      if (named != slot && !is_ahead(e.due(), slot, named))
        return say("placement: tick ", count(e.due()), ", due in slot ", named);
      if (is_due(e)) return say("placement: tick ", count(e.due()), " was missed");
      if (!inserted_before) return {};
      const wheel_entry* const before = proof.predecessor(e);
      return !before || inserted_before(*before, e)
               ? std::string{}
               : say("order: tick ", count(e.due()), " has an older entry behind a newer one");
    };
    if (const std::string broken = proof.check(slots_[slot], 0, wrong); !broken.empty())
      return say(broken, ", in slot ", slot);
  }

  // occupancy
  for (unsigned level = 0; level < levels_; ++level) {
    std::uint32_t occupied = 0;
    for (std::uint32_t i = 0; i <= mask_; ++i) {
      const bool set = occupied_[level * words_per_level_ + i / 64] >> i % 64 & 1;
      if (set == !slots_[(level << slot_bits_) + i].head)
        return say("occupancy: wrong bit for slot ", i, " of level ", level);
      occupied += set;
    }
    if (occupied != occupied_slots_[level] || (occupied != 0) != (occupied_levels_ >> level & 1))
      return say("occupancy: level ", level, " has ", occupied, " slots occupied");
  }

  // Due and drained entries: placement, order, chunks.
  for (const outlet* from : {&due_, &drained_}) {
    proof.clear_ticks();
    const char* const where = from == &due_ ? ", among the due ones" : ", among the drained ones";
    const auto wrong = [&](const wheel_entry& e, const chunk& c) -> std::string {
      if (from == &due_ && !is_due(e)) return say("placement: tick ", count(e.due()));
      if (!inserted_before) return {};
      // All entries of a chunk were in one slot. Entries of several chunks may have become due at
      // different ticks, and rewind() may have given them one tick.
      const wheel_entry* const before = proof.predecessor(e);
      return !before || chunk::of(before->cell()) != &c || inserted_before(*before, e)
               ? std::string{}
               : say("order: tick ", count(e.due()), " has an older entry behind a newer one");
    };
    if (const std::string broken = proof.check(from->chunks, from->read, wrong); !broken.empty())
      return say(broken, where);
    if (!from->chunks.head && from->read != 0) return say("chunks: cells read of none", where);
  }

  if (proof.entries != size_) return say("chunks: ", proof.entries, " entries, size() is ", size_);
  if (proof.chunks != pool_.taken() || pool_.capacity() < size_ + spare_chunks * (size_ != 0))
    return say("chunks: ", pool_.taken(), " of ", pool_.capacity(), " taken and ", proof.chunks,
               " of ", size_, " found");
  return {};
}

}  // namespace asio_wheel::detail
