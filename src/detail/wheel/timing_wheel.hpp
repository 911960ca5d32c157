// L1 wheel: the hashed, hierarchical timing wheel. It knows ticks and entries, and calls nobody.
#pragma once

#include <asio_wheel/detail/wheel/wheel_entry.hpp>

#include "../base/memory.hpp"
#include "chunk.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace asio_wheel::detail {

/// The first tick of the aligned span of 2^bits ticks that contains `t`. Requires bits < 64.
[[nodiscard]] constexpr tick span_begin(tick t, unsigned bits) noexcept
{
  return tick{(count(t) >> bits) << bits};
}

/// The shape of a wheel. Each level has 2^slot_bits slots; a slot of level k spans
/// 2^(k * fan_bits) ticks. There are as many levels as 64-bit ticks need. Requires
/// 1 <= fan_bits <= slot_bits <= 16.
struct wheel_geometry {
  unsigned slot_bits = 10;
  unsigned fan_bits = 8;
  unsigned piece = 16;  ///< chunks that a cascade may move in a tick without haste
};

/// How far a walk through a wheel has come; see timing_wheel::walk().
class wheel_walk {
public:
  [[nodiscard]] bool has_ended() const noexcept { return begin_ == end_; }

private:
  friend class timing_wheel;

  wheel_walk(std::uint32_t begin, std::uint32_t end) noexcept : begin_(begin), end_(end) {}

  // Queues count down: slot i is queue i + 2, and the due entries are queue 1.
  std::uint32_t begin_;      ///< the queue it is in
  std::uint32_t end_;        ///< the first queue that it leaves out
  chunk* behind_ = nullptr;  ///< the last chunk it has seen of the queue, or null
};

/// A hierarchical timing wheel after Varghese and Lauck (SOSP 1987), scheme 7, with slots hashed
/// by mask.
///
/// **Levels.** Level k holds exactly the ticks in [horizon(k), horizon(k + 1)), in slots of
/// 2^(k * fan_bits) ticks each; horizon(0) is now. With the default geometry:
///
///     level   a slot spans   the level reaches
///       0        1 tick         1,024 ticks
///       1      256 ticks      262,144 ticks
///       2   65,536 ticks         6.7e7 ticks
///       ...
///       7     7.2e16 ticks    all there are
///
/// A horizon rises past empty slots at no cost, as far as the level below it has slots. So a wait
/// is filed on the finest level where it cannot overtake an older wait.
///
/// **Cascades.** Let F be the first tick of a slot of level k > 0. The slot is emptied into the
/// levels below it between F - k * lead and F - (k - 1) * lead, when the slots of level k - 1 have
/// their turn. A **small** slot, of one piece, is emptied at once, by the first advance that comes.
/// It needs no wake-up: the advance for its first entry empties it on the way. A **large** slot
/// hands down its oldest entries piece by piece, each tick as many as it takes to be done in time:
/// a 256th of them in the default geometry. So no advance by a tick moves more, however the ticks
/// are distributed. Meanwhile newer entries still go to the slot. Entries of one tick keep their
/// order, because the older entries are on finer levels. If a level spans only one slot of the next
/// level, there is no room for this: the lead is 0, and a slot is emptied when now reaches its
/// first tick.
///
/// **Slots** are queues of chunks (chunk.hpp), not lists through the entries. Erasing an entry
/// touches the entry and its cell, and no neighbour. Expiring a slot splices its chunks; a reader
/// sees thirteen addresses at a time and prefetches them. An erased entry leaves a null cell of 8
/// bytes, and a chunk goes with its last live entry. Only the slot that was emptied last is
/// **vacant**: it keeps its chunk and its bit until now moves on, or another slot is emptied. So if
/// a few short-lived entries come and go, as in a quiet server, the next entry finds the slot open.
///
/// **Cost.** insert, erase: O(1). next_tick: a bit scan for each occupied level, and the entries of
/// a small slot whose turn comes first. advance: as next_tick, plus the occupied slots it passes
/// and the entries it cascades; neither the ticks it skips nor the entries it finds due.
/// Memory: a page of the slot table takes memory with the first entry in it, so an unused wheel
/// takes 3 KB.
///
/// **Invariants**, all proven by check() if it knows the order of the insertions:
///   window     now < horizon(1) <= horizon(2) <= ..., and each level spans at most its slots
///   placement  every entry is in the slot that its tick and the horizons name or, once the cascade
///              of this slot has begun, in its tick's slot on a finer level
///   order      entries of one tick stand in the order of their insertion: finer levels first,
///              and within a level in one slot
///   occupancy  a slot's bit is set iff it has a chunk; a level's bit iff it has a slot
///   chunks     each has a live entry, except the vacant slot's chunk, and the pool has a chunk for
///              every entry: moving entries never allocates
///
/// Not thread-safe.
class timing_wheel {
public:
  /// Throws std::invalid_argument if the geometry is out of range; std::bad_alloc.
  explicit timing_wheel(wheel_geometry geometry);
  timing_wheel(const timing_wheel&) = delete;
  timing_wheel& operator=(const timing_wheel&) = delete;
  ~timing_wheel();  ///< Touches no entry.

  /// Files `e` under tick `when`. An entry with a tick that is not after now() is due in the next
  /// advance(), ahead of all others. An entry with the tick `never` can be erased, and is never
  /// due.
  ///
  /// Returns a tick that next_tick() may return because of `e`: its own tick or, if `e` has made
  /// its slot large, the tick at which the slot's cascade begins. Requires that `e` is not filed.
  /// Throws std::bad_alloc, with nothing changed.
  tick insert(wheel_entry& e, tick when);

  /// Removes a filed entry that is not drained. If the entry was the last in its slot, and not due
  /// (see is_due), returns the earliest tick that next_tick() may have returned because of the
  /// slot; else none.
  maybe_tick erase(wheel_entry& e) noexcept;

  /// Removes a drained entry.
  void erase_drained(wheel_entry& e) noexcept;

  /// The earliest tick that next_tick() may return because of the slot of `e`. Requires that `e` is
  /// filed and not yet due.
  [[nodiscard]] tick wake_of(const wheel_entry& e) const noexcept;

  /// Returns true if there is a vacant slot, and an entry of tick `when` belongs there.
  [[nodiscard]] bool is_of_vacant(tick when) const noexcept
  {
    return vacant_ != no_slot && when > now_ && slot_for(when) == vacant_;
  }

  /// Returns true if there is an entry that is neither due nor drained.
  [[nodiscard]] bool has_undue() noexcept;

  /// Moves now to `to`, and what is due by then to the due queue: overdue entries first, then
  /// in the order of their ticks, then of their insertion. Returns next_tick(). Requires
  /// to >= now().
  maybe_tick advance(tick to) noexcept;

  /// Moves now back to `to`. Due entries stay due, with a tick of `to` at the latest; all others
  /// keep their ticks and their order. Never allocates. O(slots + entries). Requires to <= now().
  void rewind(tick to) noexcept;

  /// Removes the next due entry and returns it; nullptr if no entry is due.
  [[nodiscard]] wheel_entry* pop_due() noexcept;

  /// The next due entry, left in place; nullptr if no entry is due.
  [[nodiscard]] wheel_entry* front_due() const noexcept;

  /// The entries of the first due chunk, null where erased; empty once any of them has been popped.
  /// For prefetching what entries point to.
  [[nodiscard]] std::span<wheel_entry* const> fresh_due() const noexcept;

  /// Moves all entries, due or not, to where pop_drained() finds them: due entries first, then
  /// level by level from the finest on, in the order of their slots. Touches no entry. O(occupied
  /// slots).
  void drain() noexcept;

  /// Removes the next drained entry and returns it; nullptr if none is left.
  [[nodiscard]] wheel_entry* pop_drained() noexcept;

  /// Returns true if a filed entry, not drained, has become due: pop_due() will return it.
  [[nodiscard]] bool is_due(const wheel_entry& e) const noexcept { return e.at_.due <= now_; }

  // A walk goes a piece at a time, and the wheel may change between two pieces. Entries move only
  // ahead of the walk, unless they are erased and inserted anew, or the wheel is rewound. A walk
  // may meet an entry twice.

  /// A walk through all entries that are not drained: the latest ticks first, due entries last.
  [[nodiscard]] wheel_walk begin_walk() const noexcept { return {never_slot_ + 2, 0}; }

  // How to find the earliest entry that is not due: level 0 knows its tick. Walk through the first
  // slot of a coarser level if it begins before what is known so far: while it is handed down, it
  // may hold entries earlier than a finer level's.

  [[nodiscard]] unsigned levels() const noexcept { return levels_; }

  /// The first tick that entries of `level` may have; `never` if the level is empty. In level 0 an
  /// entry has exactly this tick. Requires level < levels().
  [[nodiscard]] tick first_tick(unsigned level) noexcept;

  /// A walk through the first slot of `level`. Requires first_tick(level) != never.
  [[nodiscard]] wheel_walk begin_walk_of_first(unsigned level) noexcept;

  /// Puts the next entries of the walk into `found`, and prefetches them. Requires room for a chunk
  /// of entries. Returns how many; 0 also if it passed only empty slots. One walk at a time.
  [[nodiscard]] std::size_t walk(wheel_walk& w, std::span<wheel_entry*> found) noexcept;

  [[nodiscard]] tick now() const noexcept { return now_; }

  /// The tick of the next advance() that is needed: an entry is due, or the cascade of a large slot
  /// begins or goes on. `never` if only entries of that tick are filed, none if no entry is; both
  /// leave out due and drained entries.
  [[nodiscard]] maybe_tick next_tick() noexcept;
  [[nodiscard]] bool has_due() const noexcept { return due_.chunks.head; }
  [[nodiscard]] bool has_drained() const noexcept { return drained_.chunks.head; }

  /// Entries filed, including due and drained ones.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// How many entries it has memory for.
  [[nodiscard]] std::size_t capacity() const noexcept { return pool_.capacity() - spare_chunks; }

  /// Entries that have moved to a finer level so far.
  [[nodiscard]] std::uint64_t cascaded() const noexcept { return cascaded_; }

  /// Says what is broken; empty if every invariant holds. O(slots + entries).
  ///
  /// The wheel does not keep the order of insertion, but the caller may: `inserted_before(a, b)`
  /// returns true if `a` was inserted before `b`. check() asks it about entries of one tick in a
  /// slot, and about entries that left a slot in one chunk, due or drained. Without it, check()
  /// proves only that entries of one tick stand in one slot.
  [[nodiscard]] std::string check(bool (*inserted_before)(const wheel_entry& a,
                                                          const wheel_entry& b) = nullptr) const;

private:
  static constexpr unsigned max_levels = 64;  ///< if each has two slots

  /// Chunks that may be out without a live entry: the chunk that a cascade is reading, or the
  /// vacant slot's chunk.
  static constexpr std::size_t spare_chunks = 1;

  static constexpr std::uint32_t no_slot = ~std::uint32_t{0};

  /// Entries that have left their slots, in the order of their pops.
  struct outlet {
    chunk_queue chunks;    ///< each with an entry not popped yet
    std::size_t read = 0;  ///< cells of the first chunk popped or skipped
  };

  [[nodiscard]] std::uint32_t slot_of(unsigned level, tick t) const noexcept;
  [[nodiscard]] std::uint32_t slot_for(tick when) const noexcept;
  [[nodiscard]] tick first_span(unsigned level, tick start) const noexcept;
  [[nodiscard]] tick turn_of(unsigned level, tick first) const noexcept;
  [[nodiscard]] tick first_wake(std::uint32_t slot, tick due) const noexcept;
  [[nodiscard]] bool is_ahead(tick due, std::uint32_t slot, std::uint32_t named) const noexcept;

  [[nodiscard]] bool file(wheel_entry& e, std::uint32_t slot) noexcept;
  [[nodiscard, gnu::noinline]] chunk& open_chunk(std::uint32_t slot) noexcept;
  [[nodiscard, gnu::noinline]] maybe_tick close_chunk(chunk& c, const wheel_entry& last) noexcept;
  void close_vacant() noexcept;
  void mark_occupied(std::uint32_t slot) noexcept;
  void mark_empty(std::uint32_t slot) noexcept;
  [[nodiscard]] chunk_queue detach(std::uint32_t slot) noexcept;
  [[nodiscard]] wheel_entry* front(const outlet& from) const noexcept;
  [[nodiscard]] wheel_entry* pop(outlet& from) noexcept;
  void leave(outlet& from, chunk& c) noexcept;
  [[nodiscard]] chunk_queue detach_levels() noexcept;
  [[nodiscard]] maybe_tick collect(tick to) noexcept;
  [[gnu::noinline]] void take_overdue() noexcept;
  [[nodiscard]] maybe_tick expire(tick last) noexcept;
  [[nodiscard]] maybe_tick next_need(maybe_tick first) const noexcept;
  [[nodiscard]] maybe_tick next_cascade() const noexcept;
  [[gnu::noinline]] void cascade_levels() noexcept;
  void cascade(unsigned level, tick first) noexcept;
  [[nodiscard]] std::uint64_t refile(chunk_queue& source, std::uint64_t chunks) noexcept;
  [[gnu::noinline]] void raise_horizons() noexcept;

  // What every insert and erase uses comes first, in two cache lines.
  unsigned slot_bits_;
  unsigned fan_bits_;
  std::uint32_t mask_;  ///< of a level's slots
  unsigned levels_;
  tick now_{};
  std::uint64_t occupied_levels_ = 0;  ///< bit k: level k has an occupied slot
  std::size_t size_ = 0;
  zeroes<chunk_queue> slots_;
  std::vector<std::uint64_t> occupied_;  ///< a bit for each slot
  std::uint32_t words_per_level_;

  // The slots without a place on the time line, behind the levels' slots.
  std::uint32_t overdue_slot_;
  std::uint32_t never_slot_;

  std::uint32_t vacant_ = no_slot;  ///< the slot emptied last; may be in use again
  unsigned least_piece_;
  tick vacant_wake_{};  ///< wake_of() its entries
  std::uint64_t lead_;  ///< of level 1; k times as much for level k

  outlet due_;
  outlet drained_;
  chunk_pool pool_;

  /// [k]: levels below k hold the ticks before it. That of all levels is `never`. The one behind
  /// it, which no tick reaches, ends a search.
  std::array<tick, max_levels + 2> horizon_{};
  std::array<std::uint32_t, max_levels> occupied_slots_{};  ///< how many, by level
  std::uint64_t cascaded_ = 0;
};

}  // namespace asio_wheel::detail
