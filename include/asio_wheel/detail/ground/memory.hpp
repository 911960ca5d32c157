// L0 ground: pages of memory, and what is cut out of them.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

inline constexpr std::size_t page_size = 4096;

/// The beginning of a block that is free.
struct free_block {
  free_block* next;
};

/// A list of free blocks of one size, last in, first out.
class free_blocks {
public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push_front(free_block& b) noexcept
  {
    if (!first_) last_ = &b;
    b.next = first_;
    first_ = &b;
    ++size_;
  }

  /// The first block; nullptr if there is none.
  [[nodiscard]] free_block* front() const noexcept { return first_; }

  /// Takes it out.
  [[nodiscard]] free_block* pop_front() noexcept
  {
    if (!first_) return nullptr;
    --size_;
    return std::exchange(first_, first_->next);
  }

  /// Takes over all blocks of `other`, in front of those here. O(1).
  void splice_front(free_blocks& other) noexcept;

  /// Cuts a page into blocks of `block_size`, the first of them in front. What is left of the page
  /// is not used.
  void cut(void* page, std::size_t block_size) noexcept;

  /// Takes out the pages all of whose blocks are here, and returns them: as blocks, each a page, in
  /// the order of their addresses. Needs memory for as many pointers as there are blocks; without
  /// it, finds none.
  [[nodiscard]] free_blocks take_pages(std::size_t block_size) noexcept;

private:
  free_block* first_ = nullptr;
  free_block* last_ = nullptr;  ///< if there is a first
  std::size_t size_ = 0;
};

/// Hands out pages of page_size bytes, aligned to their size.
///
/// A wheel that moves its entries must not run out of memory. So it has pages promised to it, which
/// costs no memory yet, before it files the entries that may need them.
class page_source {
public:
  /// Promises `n` pages more. Throws std::bad_alloc, with nothing changed.
  virtual void promise(std::size_t n) = 0;

  /// `n` of the promised pages will not be needed.
  virtual void forgo(std::size_t n) noexcept = 0;

  /// Hands out one of the promised pages. Its contents are undefined.
  [[nodiscard]] virtual void* take_promised() noexcept = 0;

  virtual void give_back(void* page) noexcept = 0;

protected:
  ~page_source() = default;
};

/// Gives pages of zeroes back to the system.
struct unmap_zeroes {
  std::size_t bytes;

  void operator()(void* p) const noexcept;
};

/// Pages of zeroes from the system, which take memory once they are touched. Throws std::bad_alloc.
[[nodiscard]] void* map_zeroes(std::size_t bytes);

/// A fixed number of `T`s, all zero at first. What is never touched, most of a large table, takes
/// no memory.
template <class T>
using zeroes = std::unique_ptr<T[], unmap_zeroes>;

/// Throws std::bad_alloc.
template <class T>
[[nodiscard]] zeroes<T> make_zeroes(std::size_t size)
{
  static_assert(std::is_trivially_destructible_v<T>);
  const std::size_t bytes = size * sizeof(T);
  return zeroes<T>(static_cast<T*>(map_zeroes(bytes)), {bytes});
}

/// A hint that `*p` is about to be read and written. Never faults, whatever `p` is; does nothing
/// where the compiler has no such hint. It is an object because Boost's containers call their own
/// prefetch() unqualified, and for elements of ours would find a function as well.
inline constexpr auto prefetch = []([[maybe_unused]] const void* p) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(p, 1);
#endif
};

}  // namespace asio_wheel::detail
