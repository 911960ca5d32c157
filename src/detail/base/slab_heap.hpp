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

/// Blocks of 1 to 16 cache lines for one thread or one wheel. Other threads may return its blocks.
///
/// A **slab** of 32 KB has blocks of one size. An empty slab serves another size next. When more
/// than a few slabs are empty, the system takes back their memory; the heap keeps their addresses.
/// Slabs lie in **regions** of 2 MB, with a table of the slabs behind them. A heap's regions after
/// the first may be huge pages: with small pages a million waits take two thirds longer to start.
///
/// Another thread returns a block to a list of its slab, by compare-exchange. It never touches the
/// heap, so a fork leaves no lock behind. The heap looks into some of these lists before it opens a
/// slab. After the heap has gone, the thread that returns a region's last block frees the region.
///
/// Not thread-safe, except return_block().
class slab_heap {
public:
  static constexpr std::size_t slab_size = std::size_t{32} << 10;

  /// How many blocks of `lines` cache lines a slab has.
  [[nodiscard]] static constexpr std::size_t blocks_of_slab(std::size_t lines) noexcept
  {
    return slab_size / (lines * block_unit);
  }

  slab_heap() = default;
  slab_heap(const slab_heap&) = delete;
  slab_heap& operator=(const slab_heap&) = delete;
  ~slab_heap();

  /// A block, aligned to the largest power of two that divides its size. Throws std::bad_alloc, but
  /// never while the heap has an empty slab.
  [[nodiscard]] void* take(std::size_t lines);

  /// Takes back `n` blocks of any heaps. Returns the block that follows them.
  free_block* give_back(free_block* first, std::size_t n) noexcept;
  void give_back(void* p) noexcept;

  /// Takes back a block of any heap, in any thread.
  static void return_block(void* p) noexcept;

  /// Makes sure that the heap has `n` slabs, in use or not. Throws std::bad_alloc.
  void reserve(std::size_t n);
  [[nodiscard]] std::size_t slabs() const noexcept { return slabs_; }

private:
  struct slab;
  struct region;

  [[nodiscard, gnu::noinline, gnu::cold]] slab& open(std::size_t lines);
  [[gnu::noinline, gnu::cold]] void close(slab& s) noexcept;
  void link(slab& s) noexcept;
  void unlink(slab& s) noexcept;

  std::array<slab*, most_block_units> with_room_{};  ///< slabs by the size of their blocks
  slab* empty_ = nullptr;
  std::size_t spare_ = 0;      ///< so many of the first empty slabs take memory
  slab* collected_ = nullptr;  ///< the last slab looked into for returned blocks
  region* oldest_ = nullptr;
  region* newest_ = nullptr;
  region* untouched_ = nullptr;  ///< the first region that takes no memory yet
  std::size_t slabs_ = 0;
};

}  // namespace asio_wheel::detail
