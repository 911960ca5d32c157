// L1 wheel: the proof of the invariants that timing_wheel.hpp names.
#include <asio_wheel/wheel/timing_wheel.hpp>

#include <sstream>

namespace asio_wheel {
namespace {

template <class... Parts>
std::string say(const Parts&... parts)
{
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace

std::string timing_wheel::check() const
{
  // window
  for (unsigned level = 1; level <= levels_; ++level) {
    if (horizon_[level] <= now_ && now_ != never)
      return say("window: horizon(", level, ") is ", count(horizon_[level]), ", now is ",
                 count(now_));
    if (level > 1 && horizon_[level] < horizon_[level - 1])
      return say("window: horizon(", level, ") is before horizon(", level - 1, ")");
    const unsigned bits = shift(level - 1);
    const std::uint64_t slots_spanned =
      bits < 64 && horizon_[level] != never
        ? (count(span_begin(horizon_[level], bits)) >> bits) - (count(now_) >> bits)
        : 0;
    if (slots_spanned > std::uint64_t{mask()} + 1)
      return say("window: level ", level - 1, " spans ", slots_spanned, " slots");
  }

  std::size_t entries = 0;
  std::size_t chunks = 0;
  const auto check_queue = [&](const chunk_queue& queue, std::uint32_t slot) -> std::string {
    const chunk* prev = nullptr;
    for (const chunk* c = queue.head; c; prev = c, c = c->next) {
      ++chunks;
      if (c->prev != prev) return say("chunks: broken link in slot ", slot);
      if (c->slot != slot) return say("chunks: slot ", slot, " has one of slot ", c->slot);
      unsigned live = 0;
      for (unsigned i = 0; i < c->used; ++i) {
        const wheel_entry* e = c->cells[i];
        if (!e) continue;
        ++live;
        if (e->cell_ != &c->cells[i]) return say("chunks: entry astray in slot ", slot);
        const std::uint32_t named = e->due_ > never    ? overdue_slot()
                                    : e->due_ == never ? never_slot()
                                                       : slot_for(e->due_);
        if (named != slot)
          return say("placement: tick ", count(e->due_), " is in slot ", slot, " instead of ",
                     named);
        if (e->due_ <= now_) return say("placement: tick ", count(e->due_), " was missed");
      }
      if (live == 0 || live != c->live)
        return say("chunks: one in slot ", slot, " has ", live, " entries and says ", c->live);
      entries += live;
    }
    return queue.tail == prev ? std::string{} : say("chunks: wrong tail in slot ", slot);
  };

  // placement, occupancy, chunks
  for (std::uint32_t slot = 0; slot <= never_slot(); ++slot) {
    if (std::string broken = check_queue(slots_[slot], slot); !broken.empty()) return broken;
  }
  for (unsigned level = 0; level < levels_; ++level) {
    std::uint32_t occupied = 0;
    for (std::uint32_t i = 0; i <= mask(); ++i) {
      const bool set = occupied_[level * words_per_level() + i / 64] >> i % 64 & 1;
      if (set == slots_[(level << slot_bits_) + i].empty())
        return say("occupancy: wrong bit for slot ", i, " of level ", level);
      occupied += set;
    }
    if (occupied != occupied_slots_[level] || (occupied != 0) != (occupied_levels_ >> level & 1))
      return say("occupancy: level ", level, " has ", occupied, " slots occupied");
  }

  for (const chunk* c = due_.head; c; c = c->next) {
    ++chunks;
    for (std::size_t i = c == due_.head ? due_read_ : 0; i < c->used; ++i) {
      if (!c->cells[i]) continue;
      ++entries;
      if (!is_due(*c->cells[i]))
        return say("placement: tick ", count(c->cells[i]->due_), " is among the due ones");
    }
  }
  if (entries != size_) return say("chunks: ", entries, " entries, size() is ", size_);
  if (chunks != pool_.taken() || pool_.capacity() < size_ + spare_chunks * (size_ != 0))
    return say("chunks: ", pool_.taken(), " of ", pool_.capacity(), " taken and ", chunks, " of ",
               size_, " found");
  return {};
}

}  // namespace asio_wheel
