// L1 wheel: how a slot holds its entries: a queue of chunks of pointers.
#pragma once

#include <asio_wheel/detail/wheel/wheel_entry.hpp>

#include "../base/slab_heap.hpp"

#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// Thirteen cells and their bookkeeping in two adjacent cache lines.
///
/// An erased entry leaves a null cell behind. The chunk goes back to the pool with its last live
/// entry. So there are never more chunks than live entries, but for that of a vacant slot.
struct alignas(128) chunk {
  static constexpr std::size_t capacity = 13;

  chunk* prev;
  chunk* next;
  std::uint32_t slot;  ///< index of the slot it belongs to
  std::uint8_t used;   ///< cells handed out, from the front; the rest are unwritten
  bool marked;         ///< a walk continues behind it (timing_wheel::walk)
  std::uint16_t live;  ///< cells handed out that are not null; 0 in the pool
  wheel_entry* cells[capacity];

  /// The chunk of a cell. If the cell may be gone or null, do not read the chunk.
  [[nodiscard]] static chunk* of(const void* cell) noexcept;
};
static_assert(sizeof(chunk) == 128);

/// A slot, or any other first-in, first-out sequence of entries.
struct chunk_queue {
  chunk* head = nullptr;  ///< null if it is empty
  chunk* tail = nullptr;
  std::uint32_t length = 0;
  std::uint32_t peak = 0;  ///< largest length since it was empty

  void push_back(chunk& c) noexcept;
  void unlink(chunk& c) noexcept;

  /// Takes over all chunks of `other`.
  void splice_back(chunk_queue& other) noexcept;
};

/// Where chunks come from and go back to.
///
/// Reserves slabs for as many chunks as there may be: a wheel that moves its entries must not run
/// out of memory. This costs address space, not memory.
class chunk_pool {
public:
  chunk_pool() = default;
  chunk_pool(const chunk_pool&) = delete;
  chunk_pool& operator=(const chunk_pool&) = delete;
  ~chunk_pool()
  {
    if (spare_) slabs_.give_back(spare_);
  }

  /// Makes sure that `n` chunks can be out at once. Throws std::bad_alloc, with nothing changed.
  void reserve(std::size_t n)
  {
    if (n > capacity_) grow(n);
  }

  /// A chunk with no cells handed out. Requires that fewer chunks are out than were reserved.
  [[nodiscard]] chunk& take(std::uint32_t slot) noexcept;
  void give_back(chunk& c) noexcept;

  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

private:
  [[gnu::noinline, gnu::cold]] void grow(std::size_t n);

  slab_heap slabs_;
  chunk* spare_ = nullptr;  ///< the last chunk that came back, to be taken next
  std::size_t taken_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace asio_wheel::detail
