// L0 base: takes blocks, gives them back, and reuses or discards empty slabs.
#include "slab_heap.hpp"

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace asio_wheel::detail {

struct slab_heap::slab {
  [[nodiscard]] bool has(const void* p) const noexcept
  {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(begin) <
           slab_size;
  }

  std::byte* begin = nullptr;
  std::byte* fresh = nullptr;  ///< the first block that was never out
  free_block* free = nullptr;
  std::atomic<free_block*> back{nullptr};  ///< what other threads have returned
  static inline free_block gone{};         ///< what `back` points to once the heap has gone
  slab* prev = nullptr;                    ///< in the list of slabs with room
  slab* next = nullptr;                    ///< there, or in the list of empty slabs
  slab* after = nullptr;                   ///< in a ring of all slabs
  std::uint16_t lines = 0;                 ///< of a block
  std::uint16_t capacity = 0;
  std::uint16_t out = 0;  ///< blocks, also blocks that other threads have returned
};

/// The table behind its slabs.
struct slab_heap::region {
  static constexpr std::size_t size = std::size_t{2} << 20;
  static constexpr std::align_val_t alignment{size};

  [[nodiscard]] static region& of(const void* block) noexcept
  {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    return *reinterpret_cast<region*>((address & ~(size - 1)) + size);
  }
  [[nodiscard]] slab& slab_of(const void* block) noexcept
  {
    return slabs[reinterpret_cast<std::uintptr_t>(block) % size / slab_size];
  }
  [[nodiscard]] std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this) - size; }

  std::array<slab, size / slab_size> slabs{};
  std::atomic<slab_heap*> owner;     ///< null once the heap has gone
  std::atomic<std::size_t> left{0};  ///< once the heap has gone: blocks out
  region* newer = nullptr;
};

/// Leaves regions to the threads that return their last blocks. `left` wraps if these are faster.
slab_heap::~slab_heap()
{
  while (oldest_) {
    region& r = *std::exchange(oldest_, oldest_->newer);
    r.owner.store(nullptr, std::memory_order_relaxed);
    std::size_t out = 0;
    for (slab& s : r.slabs) {
      out += s.out;
      const free_block* b = s.back.exchange(&slab::gone, std::memory_order_acquire);
      for (; b; b = b->next) --out;
    }
    if (r.left.fetch_add(out, std::memory_order_acq_rel) + out == 0)
      ::operator delete(r.begin(), region::alignment);
  }
}

void* slab_heap::take(std::size_t lines)
{
  slab& s = with_room_[lines - 1] ? *with_room_[lines - 1] : open(lines);
  if (++s.out == s.capacity) unlink(s);
  if (s.free) return std::exchange(s.free, s.free->next);
  return std::exchange(s.fresh, s.fresh + lines * block_unit);
}

void slab_heap::give_back(void* p) noexcept
{
  give_back(::new (p) free_block{}, 1);
}

free_block* slab_heap::give_back(free_block* first, std::size_t n) noexcept
{
  while (n != 0) {
    region& r = region::of(first);
    if (r.owner.load(std::memory_order_relaxed) != this) {
      return_block(std::exchange(first, first->next));
      --n;
      continue;
    }
    // Blocks that ended one after the other often lie in one slab.
    slab& s = r.slab_of(first);
    free_block* last = first;
    std::size_t left = n - 1;
    for (; left != 0 && s.has(last->next); --left) last = last->next;
    free_block* const next = std::exchange(last->next, s.free);
    s.free = first;
    if (s.out == s.capacity) link(s);
    s.out = static_cast<std::uint16_t>(s.out - (n - left));
    // The last slab with room stays, or it would come and go with each block.
    if (s.out == 0 && (s.prev || s.next)) close(s);
    first = next;
    n = left;
  }
  return first;
}

void slab_heap::return_block(void* p) noexcept
{
  region& r = region::of(p);
  std::atomic<free_block*>& back = r.slab_of(p).back;
  auto* const b = ::new (p) free_block{back.load(std::memory_order_relaxed)};
  while (b->next != &slab::gone)
    if (back.compare_exchange_weak(b->next, b, std::memory_order_release,
                                   std::memory_order_relaxed))
      return;
  if (r.left.fetch_sub(1, std::memory_order_acq_rel) == 1)
    ::operator delete(r.begin(), region::alignment);
}

void slab_heap::link(slab& s) noexcept
{
  slab*& first = with_room_[s.lines - 1u];
  s.prev = nullptr;
  s.next = std::exchange(first, &s);
  if (s.next) s.next->prev = &s;
}

void slab_heap::unlink(slab& s) noexcept
{
  (s.prev ? s.prev->next : with_room_[s.lines - 1u]) = s.next;
  if (s.next) s.next->prev = s.prev;
}

/// A slab with room: other threads have returned blocks to it, or it is empty.
slab_heap::slab& slab_heap::open(std::size_t lines)
{
  // Takes back what other threads have returned to the next few slabs.
  for (int i = 0; i != 8 && collected_; ++i) {
    collected_ = collected_->after;
    free_block* b = collected_->back.exchange(nullptr, std::memory_order_acquire);
    while (b) give_back(std::exchange(b, b->next));
  }
  if (slab* const s = with_room_[lines - 1]) return *s;
  if (!empty_) {
    if (!untouched_) reserve(slabs_ + 1);
    for (std::size_t i = untouched_->slabs.size(); i-- != 0;) {
      slab& s = untouched_->slabs[i];
      s.begin = untouched_->begin() + i * slab_size;
      s.next = std::exchange(empty_, &s);
      s.after = collected_ ? std::exchange(collected_->after, &s) : &s;
      collected_ = &s;
    }
    untouched_ = untouched_->newer;
  }
  slab& s = *std::exchange(empty_, empty_->next);
  if (spare_ != 0) --spare_;
  s.free = nullptr;
  s.fresh = s.begin;
  s.lines = static_cast<std::uint16_t>(lines);
  s.capacity = static_cast<std::uint16_t>(blocks_of_slab(lines));
  link(s);
  return s;
}

/// Discards several slabs at once, so that a few may come and go in memory.
void slab_heap::close(slab& s) noexcept
{
  constexpr std::size_t few = 16;
  unlink(s);
  s.next = std::exchange(empty_, &s);
  if (++spare_ < 2 * few) return;
#if defined(__linux__)
  slab* d = empty_;
  for (std::size_t i = 0; i != spare_; ++i, d = d->next)
    if (i >= few) madvise(d->begin, slab_size, MADV_DONTNEED);
#endif
  spare_ = few;
}

void slab_heap::reserve(std::size_t n)
{
  for (; slabs_ < n; slabs_ += newest_->slabs.size()) {
    void* const memory = ::operator new(region::size + sizeof(region), region::alignment);
#if defined(__linux__)
    madvise(memory, region::size + sizeof(region), MADV_NOHUGEPAGE);
    if (newest_) madvise(memory, region::size, MADV_HUGEPAGE);
#endif
    newest_ = (newest_ ? newest_->newer : oldest_) = ::new (&region::of(memory)) region{{}, this};
    if (!untouched_) untouched_ = newest_;
  }
}

}  // namespace asio_wheel::detail
