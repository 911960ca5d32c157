// L0 ground: pages of memory, cut into blocks of one size.
#pragma once

#include <cstddef>
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

}  // namespace asio_wheel::detail
