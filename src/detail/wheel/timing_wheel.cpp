// L1 wheel: filing, erasing and advancing. check() is in timing_wheel_check.cpp.
#include "timing_wheel.hpp"

#include "../base/memory.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace asio_wheel::detail {
namespace {

constexpr unsigned word_bits = 64;
constexpr unsigned tick_bits = 64;

/// Ticks that the cascade of a slot may take, if the level below has room for so many.
constexpr std::uint64_t longest_lead = 256;

/// t + 2^bits, or `never`. Requires bits < 64.
constexpr tick add_span(tick t, unsigned bits) noexcept
{
  return t + (std::uint64_t{1} << bits);
}

const wheel_geometry& valid(const wheel_geometry& g)
{
  if (g.fan_bits < 1 || g.fan_bits > g.slot_bits || g.slot_bits > 16)
    throw std::invalid_argument("wheel_geometry: 1 <= fan_bits <= slot_bits <= 16 is required");
  return g;
}

void prefetch_entries(const chunk& c) noexcept
{
  for (unsigned i = 0; i < c.used; ++i) prefetch(c.cells[i]);
}

/// On entering `c`: prefetches the entries of the next chunk, and the chunk behind it.
void prefetch_behind(const chunk& c) noexcept
{
  const chunk* next = c.next;
  if (!next) return;
  prefetch_entries(*next);
  if (next->next) {
    prefetch(next->next);
    prefetch(next->next->cells + chunk::capacity - 1);
  }
}

}  // namespace

timing_wheel::timing_wheel(wheel_geometry g)
  : slot_bits_(valid(g).slot_bits),
    fan_bits_(g.fan_bits),
    mask_((1u << g.slot_bits) - 1),
    levels_((tick_bits - slot_bits_ + fan_bits_ - 1) / fan_bits_ + 1),
    slots_(make_zeroes<chunk_queue>((std::size_t{levels_} << slot_bits_) + 2)),
    words_per_level_(std::max(1u, (mask_ + 1) / word_bits)),
    overdue_slot_(levels_ << slot_bits_),
    never_slot_(overdue_slot_ + 1),
    least_piece_(g.piece),
    lead_(slot_bits_ > fan_bits_ ? std::min(longest_lead, std::uint64_t{1} << fan_bits_) : 0)
{
  occupied_.resize(std::size_t{levels_} * words_per_level_);
  horizon_[levels_] = never;
  horizon_[levels_ + 1] = overdue;
  raise_horizons();
}

timing_wheel::~timing_wheel()
{
  drain();
  while (chunk* const c = drained_.chunks.head) leave(drained_, *c);
}

/// The slot of `level` that `t` hashes to.
std::uint32_t timing_wheel::slot_of(unsigned level, tick t) const noexcept
{
  return (level << slot_bits_) +
         (static_cast<std::uint32_t>(count(t) >> level * fan_bits_) & mask_);
}

/// The slot of the finest level that reaches `when`.
std::uint32_t timing_wheel::slot_for(tick when) const noexcept
{
  unsigned level = 0;
  while (when >= horizon_[level + 1]) ++level;
  return level < levels_ ? slot_of(level, when) : never_slot_;
}

tick timing_wheel::insert(wheel_entry& e, tick when)
{
  pool_.reserve(size_ + 1 + spare_chunks);
  ++size_;
  if (when <= now_) {
    e.at_.due = overdue;  // later than any now, so the next advance() finds it
    static_cast<void>(file(e, overdue_slot_));
  } else {
    e.at_.due = when;
    const std::uint32_t slot = slot_for(when);
    if (file(e, slot) && slots_[slot].peak > least_piece_) {
      const tick wake = first_wake(slot, when);
      if (slot == vacant_) vacant_wake_ = wake;
      return wake;
    }
  }
  return when;
}

/// Returns true if it took a new chunk.
bool timing_wheel::file(wheel_entry& e, std::uint32_t slot) noexcept
{
  chunk* c = slots_[slot].tail;
  const bool is_full = !c || c->used == chunk::capacity;
  if (is_full) c = &open_chunk(slot);
  e.at_.cell = &c->cells[c->used++];
  *e.at_.cell = &e;
  ++c->live;
  return is_full;
}

/// Appends a chunk to a slot.
chunk& timing_wheel::open_chunk(std::uint32_t slot) noexcept
{
  if (!slots_[slot].head) mark_occupied(slot);
  chunk& c = pool_.take(slot);
  slots_[slot].push_back(c);
  return c;
}

maybe_tick timing_wheel::erase(wheel_entry& e) noexcept
{
  chunk& c = *chunk::of(e.at_.cell);
  *e.at_.cell = nullptr;
  --size_;
  if (--c.live != 0) return {};
  if (e.at_.due > now_) return close_chunk(c, e);
  leave(due_, c);
  return {};
}

/// Removes a chunk whose last live entry was erased, or leaves it to a vacant slot. Returns what
/// erase() does.
maybe_tick timing_wheel::close_chunk(chunk& c, const wheel_entry& last) noexcept
{
  chunk_queue& slot = slots_[c.slot];
  if (slot.length != 1) {
    slot.unlink(c);
    pool_.give_back(c);
    return {};
  }
  if (c.slot != vacant_) {
    close_vacant();
    vacant_ = c.slot;
    vacant_wake_ = first_wake(c.slot, last.at_.due);
  }
  c.used = 0;
  return vacant_wake_;
}

/// Takes the chunk away from the vacant slot, unless the slot is in use again.
void timing_wheel::close_vacant() noexcept
{
  if (vacant_ == no_slot) return;
  const std::uint32_t slot = std::exchange(vacant_, no_slot);
  chunk* const c = slots_[slot].head;
  if (!c || c->live != 0) return;
  slots_[slot] = {};
  pool_.give_back(*c);
  mark_empty(slot);
}

void timing_wheel::mark_occupied(std::uint32_t slot) noexcept
{
  if (slot >= overdue_slot_) return;
  const std::uint32_t level = slot >> slot_bits_;
  const std::uint32_t bit = slot & mask_;
  occupied_[level * words_per_level_ + bit / word_bits] |= std::uint64_t{1} << bit % word_bits;
  occupied_levels_ |= std::uint64_t{1} << level;
  ++occupied_slots_[level];
}

void timing_wheel::mark_empty(std::uint32_t slot) noexcept
{
  if (slot >= overdue_slot_) return;
  const std::uint32_t level = slot >> slot_bits_;
  const std::uint32_t bit = slot & mask_;
  occupied_[level * words_per_level_ + bit / word_bits] &= ~(std::uint64_t{1} << bit % word_bits);
  if (--occupied_slots_[level] == 0) occupied_levels_ &= ~(std::uint64_t{1} << level);
}

tick timing_wheel::wake_of(const wheel_entry& e) const noexcept
{
  const std::uint32_t slot = chunk::of(e.at_.cell)->slot;
  return slot == vacant_ ? vacant_wake_ : first_wake(slot, e.at_.due);
}

bool timing_wheel::has_undue() noexcept
{
  close_vacant();
  return occupied_levels_ != 0 || slots_[overdue_slot_].head || slots_[never_slot_].head;
}

/// wake_of() an entry of `slot` with the tick `due`.
tick timing_wheel::first_wake(std::uint32_t slot, tick due) const noexcept
{
  if (slot < overdue_slot_) {
    const unsigned level = slot >> slot_bits_;
    const tick first = span_begin(due, level * fan_bits_);
    return slots_[slot].peak > least_piece_ ? turn_of(level, first) : first;
  }
  return slot == overdue_slot_ ? now_ : never;
}

/// The first tick of the first occupied slot of an occupied level, from the slot of `start` on.
tick timing_wheel::first_span(unsigned level, tick start) const noexcept
{
  const unsigned bits = level * fan_bits_;
  const std::uint64_t base = count(start) >> bits;
  const std::uint32_t from = static_cast<std::uint32_t>(base) & mask_;
  const std::uint32_t words = words_per_level_;
  const std::uint64_t* word = &occupied_[level * words];

  std::uint32_t index = from / word_bits;
  std::uint64_t set = word[index] & ~std::uint64_t{0} << from % word_bits;
  while (set == 0) {
    index = (index + 1) & (words - 1);
    set = word[index];
  }
  const std::uint32_t slot = index * word_bits + static_cast<std::uint32_t>(std::countr_zero(set));
  const std::uint64_t spans = base + ((slot - from) & mask_);
  return tick{spans << bits};
}

/// When advance() first has something to do for a slot that begins at `first`: it is due, or its
/// cascade begins or continues.
tick timing_wheel::turn_of(unsigned level, tick first) const noexcept
{
  if (level == 0) return first;
  const std::uint64_t lead = level * lead_;
  return count(first) - count(now_) > lead ? tick{count(first) - lead} : now_ + 1;
}

maybe_tick timing_wheel::next_tick() noexcept
{
  close_vacant();
  if (slots_[overdue_slot_].head) return now_;
  return next_need((occupied_levels_ & 1) != 0 ? first_span(0, now_) : maybe_tick());
}

/// What next_tick() returns if nothing is overdue, or in level 0 before `first`.
///
/// Any advance hands down a small slot at once. So a small slot needs no advance before its first
/// entry is due.
maybe_tick timing_wheel::next_need(maybe_tick first) const noexcept
{
  maybe_tick next = first;
  for (std::uint64_t left = occupied_levels_ & ~std::uint64_t{1}; left != 0; left &= left - 1) {
    const auto level = static_cast<unsigned>(std::countr_zero(left));
    const tick begin = first_span(level, now_);
    const tick turn = turn_of(level, begin);
    if (turn >= next) continue;
    const chunk_queue& slot = slots_[slot_of(level, begin)];
    if (slot.peak > least_piece_) {
      next = turn;
      continue;
    }
    for (const chunk* c = slot.head; c; c = c->next) {
      for (unsigned i = 0; i < c->used; ++i) {
        if (c->cells[i]) next = std::min(next, maybe_tick(c->cells[i]->at_.due));
      }
    }
    if (occupied_slots_[level] == 1) continue;
    // The slot behind it may be large, and have its turn first. A third slot cannot: no cascade
    // takes longer than a slot of its level spans.
    const tick second = first_span(level, add_span(begin, level * fan_bits_));
    if (slots_[slot_of(level, second)].peak > least_piece_)
      next = std::min(next, maybe_tick(turn_of(level, second)));
  }
  return !next && slots_[never_slot_].head ? never : next;
}

/// The first tick at which a slot may cascade, if any.
maybe_tick timing_wheel::next_cascade() const noexcept
{
  maybe_tick next;
  for (std::uint64_t left = occupied_levels_ & ~std::uint64_t{1}; left != 0; left &= left - 1) {
    const auto level = static_cast<unsigned>(std::countr_zero(left));
    next = std::min(next, maybe_tick(turn_of(level, first_span(level, now_))));
  }
  return next;
}

maybe_tick timing_wheel::advance(tick to) noexcept
{
  assert(to >= now_ && to < never);
  if (vacant_ != no_slot) close_vacant();
  const tick before = now_;
  const maybe_tick next = size_ != 0 ? collect(to) : maybe_tick();
  now_ = to;
  // Every horizon is a multiple of a level-1 span, so horizons move only when now leaves such a
  // span.
  if ((count(before) ^ count(to)) >> fan_bits_ != 0) raise_horizons();
  return next;
}

/// Moves what is due by `to` to the due queue. Returns when there is more to do.
maybe_tick timing_wheel::collect(tick to) noexcept
{
  if (slots_[overdue_slot_].head) take_overdue();
  for (;;) {
    const maybe_tick cascade = next_cascade();
    const bool is_last = cascade > to;
    const maybe_tick first = expire(is_last ? to : tick{count(*cascade) - 1});
    if (is_last) return first < cascade ? first : next_need(first);
    now_ = *cascade;
    cascade_levels();
  }
}

/// Moves the slots of level 0 up to `last` to the due queue. Returns the first tick left in level
/// 0, if any.
maybe_tick timing_wheel::expire(tick last) noexcept
{
  while ((occupied_levels_ & 1) != 0) {
    const tick first = first_span(0, now_);
    if (first > last) return first;
    now_ = first;
    chunk_queue found = detach(slot_of(0, first));
    if (!due_.chunks.head) prefetch_entries(*found.head);  // no chunk before it prefetched them
    due_.chunks.splice_back(found);
  }
  return {};
}

chunk_queue timing_wheel::detach(std::uint32_t slot) noexcept
{
  if (slots_[slot].head) mark_empty(slot);
  return std::exchange(slots_[slot], {});
}

void timing_wheel::take_overdue() noexcept
{
  chunk_queue found = detach(overdue_slot_);
  for (chunk* c = found.head; c; c = c->next) {
    for (unsigned i = 0; i < c->used; ++i) {
      if (c->cells[i]) c->cells[i]->at_.due = now_;
    }
  }
  due_.chunks.splice_back(found);
}

/// Cascades the slots whose turn has come, coarsest level first: each level hands down to the
/// levels below.
void timing_wheel::cascade_levels() noexcept
{
  std::uint64_t left = ~std::uint64_t{1};
  while ((left & occupied_levels_) != 0) {
    const auto level = static_cast<unsigned>(std::bit_width(left & occupied_levels_)) - 1;
    const tick first = first_span(level, now_);
    if (count(first) - count(now_) <= level * lead_) cascade(level, first);
    left &= (std::uint64_t{1} << level) - 1;
  }
}

/// Hands the slot that begins at `first` to the levels below: at once, or piece by piece, so that
/// it is empty before their turn.
void timing_wheel::cascade(unsigned level, tick first) noexcept
{
  const std::uint32_t slot = slot_of(level, first);
  const std::uint64_t chunks = slots_[slot].length;
  const std::uint64_t ticks_left = count(first) - count(now_) - (level - 1) * lead_;
  // Otherwise the slot was filled anew after its time, and `ticks_left` has wrapped around.
  const bool in_time = count(first) - count(now_) > (level - 1) * lead_;
  const std::uint64_t piece =
    in_time ? std::max<std::uint64_t>(least_piece_, (chunks + ticks_left - 1) / ticks_left)
            : chunks;

  chunk_queue source = detach(slot);
  raise_horizons();
  cascaded_ += refile(source, piece);
  if (!source.head) return;
  slots_[slot] = source;
  mark_occupied(slot);
  raise_horizons();  // lowers them: newer entries go behind the rest
}

/// Files each entry of the first `chunks` of a detached queue in the slot that the horizons name
/// now. Returns the number of entries.
std::uint64_t timing_wheel::refile(chunk_queue& source, std::uint64_t chunks) noexcept
{
  std::uint64_t n = 0;
  for (; chunks != 0 && source.head; --chunks) {
    chunk& c = *source.head;
    prefetch_behind(c);
    for (unsigned i = 0; i < c.used; ++i) {
      wheel_entry* e = c.cells[i];
      if (e) static_cast<void>(file(*e, slot_for(e->at_.due)));
    }
    n += std::exchange(c.live, std::uint16_t{0});
    source.unlink(c);
    pool_.give_back(c);
  }
  return n;
}

/// Detaches what the levels hold: the finest level first, the earliest slot first.
chunk_queue timing_wheel::detach_levels() noexcept
{
  chunk_queue all;
  while (occupied_levels_ != 0) {
    const auto level = static_cast<unsigned>(std::countr_zero(occupied_levels_));
    chunk_queue found = detach(slot_of(level, first_span(level, now_)));
    all.splice_back(found);
  }
  return all;
}

void timing_wheel::rewind(tick to) noexcept
{
  assert(to <= now_);
  close_vacant();
  for (chunk* c = due_.chunks.head; c; c = c->next) {
    // Entries before `read` have been popped, and may be gone.
    for (std::size_t i = c == due_.chunks.head ? due_.read : 0; i < c->used; ++i) {
      if (wheel_entry* e = c->cells[i]) e->at_.due = std::min(e->at_.due, to);
    }
  }
  chunk_queue all = detach_levels();
  now_ = to;
  raise_horizons();  // up again: no entry is in the way
  static_cast<void>(refile(all, all.length));
}

void timing_wheel::drain() noexcept
{
  close_vacant();
  // The first due chunk may end up behind others, where nobody skips its popped cells.
  if (chunk* const c = due_.chunks.head) std::fill_n(c->cells, due_.read, nullptr);
  due_.read = 0;
  drained_.chunks.splice_back(due_.chunks);
  for (chunk_queue found : {detach(overdue_slot_), detach_levels(), detach(never_slot_)})
    drained_.chunks.splice_back(found);
}

/// Moves each horizon but the last up as far as the slots of the level below and the horizon above
/// allow, without overtaking an entry of its own level.
void timing_wheel::raise_horizons() noexcept
{
  tick limit = never;
  for (unsigned level = levels_ - 1; level >= 1; --level) {
    const tick reach =
      add_span(span_begin(now_, level * fan_bits_), (level - 1) * fan_bits_ + slot_bits_);
    limit = std::min(limit, reach);
    if (occupied_levels_ >> level & 1) limit = std::min(limit, first_span(level, now_));
    horizon_[level] = limit;
  }
}

wheel_entry* timing_wheel::pop_due() noexcept
{
  return pop(due_);
}

wheel_entry* timing_wheel::front_due() const noexcept
{
  return front(due_);
}

std::span<wheel_entry* const> timing_wheel::fresh_due() const noexcept
{
  const chunk* const c = due_.chunks.head;
  if (!c || due_.read != 0) return {};
  return {c->cells, c->used};
}

wheel_entry* timing_wheel::pop_drained() noexcept
{
  return pop(drained_);
}

wheel_entry* timing_wheel::front(const outlet& from) const noexcept
{
  const chunk* const c = from.chunks.head;
  if (!c) return nullptr;
  std::size_t i = from.read;
  while (!c->cells[i]) ++i;
  return c->cells[i];
}

wheel_entry* timing_wheel::pop(outlet& from) noexcept
{
  wheel_entry* const e = front(from);
  if (!e) return nullptr;
  chunk& c = *from.chunks.head;
  if (from.read == 0) prefetch_behind(c);
  from.read = static_cast<std::size_t>(e->at_.cell - c.cells) + 1;
  --size_;
  if (--c.live == 0) leave(from, c);
  return e;
}

void timing_wheel::erase_drained(wheel_entry& e) noexcept
{
  chunk& c = *chunk::of(e.at_.cell);
  *e.at_.cell = nullptr;
  --size_;
  if (--c.live == 0) leave(drained_, c);
}

/// Removes a chunk that has no entry left to pop.
void timing_wheel::leave(outlet& from, chunk& c) noexcept
{
  if (&c == from.chunks.head) from.read = 0;
  from.chunks.unlink(c);
  pool_.give_back(c);
}

}  // namespace asio_wheel::detail
