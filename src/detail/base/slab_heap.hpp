// L0 base: blocks of memory from slabs. Empty slabs go back to the system.
#pragma once

#include <array>
#include <cstddef>

namespace asio_wheel::detail {

/// The unit of the sizes of blocks, and their alignment: a cache line.
inline constexpr std::size_t block_unit = 64;
inline constexpr std::size_t most_block_units = 16;

struct free_block {
  free_block* next;
};

/// A list of free blocks of one size.
struct free_blocks {
  free_block* first = nullptr;
  std::size_t size = 0;
};

/// Blocks of 1 to 16 cache lines for one thread or one wheel. Other threads may return its blocks.
///
/// A **slab** of 32 KB has blocks of one size. Its first line describes it, so any block finds its
/// slab. Slabs lie in **regions** from operator new, each larger than the region before, up to 2
/// MB. These are huge pages if the system has them: without huge pages, a million pending waits
/// spend a fifth of their time on address translation.
///
/// A slab that is empty serves blocks of another size next. When many slabs are empty, the system
/// takes their memory back, region by region. Their addresses stay reserved until the heap goes.
///
/// Other threads return blocks to a slab by a compare-exchange on one word of the slab. They never
/// touch the heap, so it needs no lock that a fork could leave locked. The heap collects such
/// blocks from some slabs each time before it opens another slab. When the heap goes, it tells each
/// slab with blocks out how many of its blocks are back. The thread that returns the last block of
/// a region frees the region.
///
/// Not thread-safe, except return_block().
class slab_heap {
public:
  static constexpr std::size_t slab_size = std::size_t{32} << 10;

  /// How many blocks of `lines` cache lines a slab has.
  [[nodiscard]] static constexpr std::size_t blocks_of_slab(std::size_t lines) noexcept
  {
    return slab_size / (lines * block_unit) - 1;
  }

  slab_heap() = default;
  slab_heap(const slab_heap&) = delete;
  slab_heap& operator=(const slab_heap&) = delete;
  ~slab_heap();

  /// A block, aligned to the largest power of two that divides its size. Throws std::bad_alloc, but
  /// never while the heap has an empty slab.
  [[nodiscard]] free_block* take(std::size_t lines);

  /// At least one block and at most `n`.
  [[nodiscard]] free_blocks take(std::size_t lines, std::size_t n);

  /// Takes back a block of this heap.
  [[gnu::noinline]] void give_back(void* p) noexcept;

  /// Takes back `n` blocks of any heaps. Returns the block that follows them.
  free_block* give_back_to_owners(free_block* first, std::size_t n) noexcept;

  /// Takes back a block of any heap, in any thread.
  static void return_block(void* p) noexcept;

  /// Makes sure that the heap has `n` slabs. Throws std::bad_alloc, with nothing changed.
  void reserve(std::size_t n);

  /// How many slabs the heap has, in use or not.
  [[nodiscard]] std::size_t slabs() const noexcept { return in_use_ + spare_ + unused_; }

private:
  struct region;
  struct slab;

  void add_region();
  [[nodiscard, gnu::noinline, gnu::cold]] slab& open(std::size_t lines);
  void give_back(slab& s, free_block& first, free_block& last, std::size_t n) noexcept;
  [[gnu::noinline, gnu::cold]] void close(slab& s) noexcept;
  void link(slab& s) noexcept;
  void unlink(slab& s) noexcept;
  void collect_some() noexcept;
  void collect(slab& s) noexcept;
  void discard_spare(region& r) noexcept;
  static void abandon(region& r) noexcept;
  static void drop(region& r) noexcept;

  std::array<slab*, most_block_units> with_room_{};  ///< slabs by the size of their blocks
  region* oldest_ = nullptr;
  region* latest_ = nullptr;
  region* first_free_ = nullptr;    ///< all regions before it are in use as a whole
  region* collect_from_ = nullptr;  ///< where collect_some() goes on
  unsigned collect_slab_ = 0;
  region* discarded_next_ = nullptr;
  std::size_t in_use_ = 0;
  std::size_t spare_ = 0;   ///< empty slabs that take memory
  std::size_t unused_ = 0;  ///< empty slabs that take no memory
};

}  // namespace asio_wheel::detail
