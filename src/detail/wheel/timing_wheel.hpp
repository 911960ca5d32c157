// L1 wheel: the hashed, hierarchical timing wheel. It knows ticks and entries, and calls nobody.
#pragma once

#include <asio_wheel/detail/base/tick.hpp>

#include "../base/memory.hpp"
#include "chunk.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace asio_wheel::detail {

/// The shape of a wheel. Each level has 2^slot_bits slots; a slot of level k spans
/// 2^(k * fan_bits) ticks. Requires 1 <= fan_bits <= slot_bits <= 16.
struct wheel_geometry {
  unsigned slot_bits = 10;
  unsigned fan_bits = 8;
  unsigned levels = 0;  ///< at most; 0: as many as 64-bit ticks take
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
  std::uint32_t end_;        ///< the first one that it leaves out
  chunk* behind_ = nullptr;  ///< the last chunk it has seen of the queue; null: none
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
/// What lies beyond the last level (possible only in small geometries) waits in one overflow queue,
/// which is filed anew as a whole when now reaches the last horizon. A horizon rises past empty
/// slots at no cost, as far as the level below it has slots. So a wait is filed on the finest level
/// where it cannot overtake an older one.
///
/// **Cascades.** Let F be the first tick of a slot of level k > 0. The slot is emptied into the
/// levels below it between F - k * lead and F - (k - 1) * lead, when the slots of level k - 1 have
/// their turn. A **small** slot, of one piece, is emptied at once, by whatever advance comes first.
/// If none comes, the one for its first entry empties it on the way, so it is nothing to wake up
/// for. A **large** slot hands down its oldest entries piece by piece, each tick as many as it
/// takes to be done in time: a 256th of them in the default geometry. So no advance by a tick moves
/// more, however the ticks are distributed. Meanwhile newer entries still go to the slot, and
/// entries of one tick keep their order, because the older ones are on finer levels. A geometry in
/// which a level spans one slot of the next has no room for this: its lead is 0, and a slot is
/// emptied when now reaches its first tick.
///
/// **Slots** are queues of chunks (chunk.hpp), not lists through the entries. Erasing an entry
/// touches the entry and its cell, and no neighbour. Expiring a slot splices its chunks; whoever
/// walks them sees thirteen addresses at a time and prefetches them. An erased entry leaves a null
/// cell of 8 bytes, and a chunk goes with its last live entry. Only the slot that was emptied last
/// is **vacant**: it keeps its chunk and its bit until now moves on, or another slot is emptied. So
/// with a few short-lived entries, as the timeouts of a quiet server are, the next one finds the
/// slot open.
///
/// **Cost.** insert, erase: O(1). next_tick: a bit scan for each occupied level, and the entries of
/// a small slot that has its turn before all others. advance: the same, the occupied slots it
/// passes and the entries it cascades; neither the ticks it skips nor the entries it finds due.
/// Memory: a page of the slot table takes memory with the first entry in it, so an unused wheel
/// takes 3 KB.
///
/// **Invariants**, all proven by check() if it is told the order of the insertions:
///   window     now < horizon(1) <= horizon(2) <= ..., and each level spans at most its slots
///   placement  every entry is in the slot that its tick and the horizons name or, once that
///              slot's cascade has begun, in its tick's slot on a finer level
///   order      entries of one tick stand in the order of their insertion: finer levels first,
///              and within a level in one slot
///   occupancy  a slot's bit is set iff it has a chunk; a level's bit iff it has a slot
///   chunks     each but that of the vacant slot has a live entry, and the pool holds one for every
///              entry: moving entries never allocates
///
/// Not thread-safe.
class timing_wheel {
public:
  static constexpr unsigned max_levels = 64;

  /// Throws std::invalid_argument if the geometry is out of range, std::bad_alloc.
  explicit timing_wheel(wheel_geometry geometry);
  timing_wheel(const timing_wheel&) = delete;
  timing_wheel& operator=(const timing_wheel&) = delete;
  ~timing_wheel();  ///< Touches no entry.

  /// Files `e` under tick `when`. A tick that is not after now() is due in the next advance(),
  /// ahead of all others. `never` is kept and erasable, and never due.
  ///
  /// Returns a tick that next_tick() may return because of `e`: its own, or the one at which the
  /// cascade of its slot begins, which it has made large. Requires that `e` is not filed. Throws
  /// std::bad_alloc, with nothing changed.
  tick insert(wheel_entry& e, tick when);

  /// Removes a filed entry that is not drained. If it was the last one in its slot, and not due
  /// (see is_due), returns the earliest tick that next_tick() may have returned because of that
  /// slot; else no_tick.
  tick erase(wheel_entry& e) noexcept;

  /// Removes an entry that was drained.
  void erase_drained(wheel_entry& e) noexcept;

  /// The earliest tick that next_tick() may return because of the slot of `e`. Requires that `e` is
  /// filed and not yet due.
  [[nodiscard]] tick wake_of(const wheel_entry& e) const noexcept;

  /// Moves now to `to`, and what is due by then to the due queue: overdue entries first, then
  /// in the order of their ticks, then of their insertion. Returns next_tick(). Requires
  /// to >= now().
  tick advance(tick to) noexcept;

  /// Moves now back to `to`. Due entries stay due, with a tick of `to` at the latest; all others
  /// keep their ticks and their order. Never allocates. O(slots + entries). Requires to <= now().
  void rewind(tick to) noexcept;

  /// Removes the next due entry and returns it; nullptr if there is none.
  [[nodiscard]] wheel_entry* pop_due() noexcept;

  /// The next due entry, left where it is; nullptr if there is none.
  [[nodiscard]] wheel_entry* front_due() const noexcept;

  /// What pop_due() takes next, as far as it is at hand, null where it was erased; nothing once
  /// some of that has been popped. For prefetching what entries point to.
  [[nodiscard]] std::span<wheel_entry* const> fresh_due() const noexcept;

  /// Moves all entries, due or not, to where pop_drained() finds them: the due ones first, then
  /// level by level from the finest on, in the order of their slots. Touches no entry. O(occupied
  /// slots).
  void drain() noexcept;

  /// Removes the next drained entry and returns it; nullptr if there is none.
  [[nodiscard]] wheel_entry* pop_drained() noexcept;

  /// Whether an entry that is filed and was not drained has become due: pop_due() will return it.
  [[nodiscard]] bool is_due(const wheel_entry& e) const noexcept;

  // A walk goes a piece at a time, and the wheel may change between two pieces. Entries move only
  // to where the walk has yet to come, unless they are erased and inserted anew, or the wheel is
  // rewound. A walk may meet an entry twice.

  /// A walk through all entries that are not drained: those furthest ahead first, the due ones
  /// last.
  [[nodiscard]] wheel_walk begin_walk() const noexcept { return {never_slot_ + 2, 0}; }

  // Where to look for the earliest entry that is not due: level 0 knows its tick; of a coarser
  // level the first slot has to be gone through, if it begins before what is known so far. It may
  // hold entries before those of a finer level while it is handed down. The overflow is one level
  // more.

  [[nodiscard]] unsigned levels() const noexcept { return levels_; }

  /// The first tick that entries of `level` may have; `never` if it has none. In level 0 one has
  /// it.
  [[nodiscard]] tick first_tick(unsigned level) noexcept;

  /// A walk through the first slot of `level`. Requires first_tick(level) != never.
  [[nodiscard]] wheel_walk begin_walk_of_first(unsigned level) noexcept;

  /// Puts the next entries of the walk into `found`, which must have room for a chunk of them, and
  /// prefetches them. Returns how many; 0 also if it passed empty slots only. One walk at a time.
  [[nodiscard]] std::size_t walk(wheel_walk& w, std::span<wheel_entry*> found) noexcept;

  [[nodiscard]] tick now() const noexcept { return now_; }

  /// The tick of the next advance() that is needed: an entry is due or, if that comes first, the
  /// cascade of a large slot begins or goes on. `never` if there is none, and no_tick if no entry
  /// is filed, apart from due and drained ones.
  [[nodiscard]] tick next_tick() noexcept;
  [[nodiscard]] bool has_due() const noexcept;
  [[nodiscard]] bool has_drained() const noexcept;

  /// Entries filed, including due and drained ones.
  [[nodiscard]] std::size_t size() const noexcept;

  /// Entries that it has memory for, whatever becomes of them.
  [[nodiscard]] std::size_t capacity() const noexcept { return pool_.capacity() - spare_chunks; }

  /// Entries that have moved to a finer level so far.
  [[nodiscard]] std::uint64_t cascaded() const noexcept { return cascaded_; }

  /// Says what is broken; empty if every invariant holds. O(slots + entries).
  ///
  /// The wheel does not keep the order of insertion, but the caller may:
  /// `inserted_before(a, b)` says whether `a` was inserted before `b`. check() asks it about the
  /// entries of one tick in a slot, and about those that left a slot in one chunk, due or drained.
  /// Without it, check() proves that entries of one tick stand in one slot, not that they are in
  /// order there.
  [[nodiscard]] std::string check(bool (*inserted_before)(const wheel_entry& a,
                                                          const wheel_entry& b) = nullptr) const;

private:
  /// Chunks that may be out without a live entry of their own: the one a cascade is reading, or
  /// that of the vacant slot.
  static constexpr std::size_t spare_chunks = 1;

  static constexpr std::uint32_t no_slot = ~std::uint32_t{0};

  /// Entries that have left their slots, in the order in which they are popped.
  struct outlet {
    chunk_queue chunks;    ///< each with an entry that was not popped yet
    std::size_t read = 0;  ///< cells of the first chunk that were popped or skipped
  };

  [[nodiscard]] std::uint32_t slot_of(unsigned level, tick t) const noexcept;
  [[nodiscard]] std::uint32_t slot_for(tick when) const noexcept;
  [[nodiscard]] tick first_span(unsigned level, tick start) const noexcept;
  [[nodiscard]] tick turn_of(unsigned level, tick first) const noexcept;
  [[nodiscard]] tick first_wake(std::uint32_t slot, tick due) const noexcept;
  [[nodiscard]] bool is_ahead(tick due, std::uint32_t slot, std::uint32_t named) const noexcept;

  [[nodiscard]] bool file(wheel_entry& e, std::uint32_t slot) noexcept;
  [[nodiscard, gnu::noinline]] chunk& open_chunk(std::uint32_t slot) noexcept;
  [[nodiscard, gnu::noinline]] tick close_chunk(chunk& c, const wheel_entry& last) noexcept;
  void close_vacant() noexcept;
  void mark_occupied(std::uint32_t slot) noexcept;
  void mark_empty(std::uint32_t slot) noexcept;
  [[nodiscard]] chunk_queue detach(std::uint32_t slot) noexcept;
  [[nodiscard]] wheel_entry* front(const outlet& from) const noexcept;
  [[nodiscard]] wheel_entry* pop(outlet& from) noexcept;
  void leave(outlet& from, chunk& c) noexcept;
  [[nodiscard]] chunk_queue detach_levels() noexcept;
  [[nodiscard]] tick collect(tick to) noexcept;
  [[gnu::noinline]] void take_overdue() noexcept;
  [[nodiscard]] tick expire(tick last) noexcept;
  [[nodiscard]] tick next_need(tick first) const noexcept;
  [[nodiscard]] tick next_cascade() const noexcept;
  [[gnu::noinline]] void cascade_levels() noexcept;
  void cascade(unsigned level, tick first) noexcept;
  void cascade_overflow() noexcept;
  [[nodiscard]] std::uint64_t refile(chunk_queue& source, std::size_t chunks) noexcept;
  [[gnu::noinline]] void raise_horizons() noexcept;

  // What every insert and erase uses comes first, in two cache lines.
  unsigned slot_bits_;
  unsigned fan_bits_;
  std::uint32_t mask_;  ///< of the slots of a level
  unsigned levels_;
  tick now_{};
  std::uint64_t occupied_levels_ = 0;  ///< bit k: level k has an occupied slot
  std::size_t size_ = 0;
  zeroes<chunk_queue> slots_;
  std::vector<std::uint64_t> occupied_;  ///< a bit for each slot of each level
  std::uint32_t words_per_level_;

  // The slots without a place on the time line, behind those of the levels.
  std::uint32_t overdue_slot_;
  std::uint32_t overflow_slot_;
  std::uint32_t never_slot_;

  std::uint32_t vacant_ = no_slot;  ///< the slot that was emptied last; it may be in use again
  unsigned least_piece_;
  tick vacant_wake_{};  ///< wake_of() its entries
  std::uint64_t lead_;  ///< of level 1; level k has k times as much

  outlet due_;
  outlet drained_;
  chunk_pool pool_;

  /// [k]: levels below k hold the ticks before it. One more, that no tick reaches, ends a search.
  std::array<tick, max_levels + 2> horizon_{};
  std::array<std::uint32_t, max_levels> occupied_slots_{};  ///< how many, by level
  std::uint64_t cascaded_ = 0;
};

}  // namespace asio_wheel::detail
