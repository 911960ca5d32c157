// L1 wheel: walking through the entries while they come and go.

#include "../base/memory.hpp"
#include "timing_wheel.hpp"

#include <cassert>
#include <utility>

namespace asio_wheel::detail {

// A walk marks the last chunk it has seen, and continues behind it. A chunk loses the mark when the
// pool hands it out again, and has no live entry while it is in the pool. So a chunk with a mark
// and a live entry is still in place, or has left its slot together with the chunks behind it, and
// the walk can go on through these. Otherwise the walk begins again at the queue's head.
//
// The chunk of a vacant slot keeps its mark when the slot is used again before now moves on. All
// its entries were inserted after the walk had begun, so the walk need not meet them.

tick timing_wheel::first_tick(unsigned level) noexcept
{
  assert(level < levels_);
  close_vacant();
  if (level == 0 && slots_[overdue_slot_].head) return now_;
  return (occupied_levels_ >> level & 1) != 0 ? first_span(level, now_) : never;
}

wheel_walk timing_wheel::begin_walk_of_first(unsigned level) noexcept
{
  assert(first_tick(level) != never);
  const std::uint32_t slot = slot_of(level, first_span(level, now_));
  return {slot + 2, slot + 1};
}

std::size_t timing_wheel::walk(wheel_walk& w, std::span<wheel_entry*> found) noexcept
{
  assert(found.size() >= chunk::capacity);
  std::size_t n = 0;
  std::size_t slots_left = 4096;  // reading 4096 slots takes a few microseconds
  for (; !w.has_ended() && slots_left != 0; --w.begin_, --slots_left) {
    const chunk_queue& queue = w.begin_ == 1 ? due_.chunks : slots_[w.begin_ - 2];
    chunk* const seen = std::exchange(w.behind_, nullptr);
    const bool is_there = seen && seen->live != 0 && std::exchange(seen->marked, false);
    for (chunk* c = is_there ? seen->next : queue.head; c; c = c->next) {
      if (found.size() - n < chunk::capacity) {
        if (w.behind_) w.behind_->marked = true;
        return n;
      }
      if (c->next) prefetch(c->next);
      // Entries before `read` have been popped, and may be gone.
      for (std::size_t i = c == due_.chunks.head ? due_.read : 0; i < c->used; ++i) {
        if (!c->cells[i]) continue;
        prefetch(c->cells[i]);
        found[n++] = c->cells[i];
      }
      w.behind_ = c;
    }
    w.behind_ = nullptr;
  }
  return n;
}

}  // namespace asio_wheel::detail
