// L2 service: the memory of the process's waits and wheels, in pages.
#pragma once

#include <asio_wheel/detail/ground/locks.hpp>
#include <asio_wheel/detail/ground/memory.hpp>

#include <cstddef>
#include <list>

namespace asio_wheel::detail {

/// Where the process's waits, and the chunks of its wheels, get their pages from.
///
/// Pages come from operator new in slabs, each larger than the one before, in huge pages if the
/// system has them: without these, a million pending waits spend a fifth of their time on address
/// translation. Slabs stay: a process that once had a million waits will probably have them again.
/// What takes memory are the pages that were used, and release() lets the system have those back
/// that are free again.
///
/// Thread-safe.
class page_supply final : public page_source {
public:
  [[nodiscard]] static page_supply& instance() noexcept;

  /// A page that was not promised to anybody. Throws std::bad_alloc.
  [[nodiscard]] void* take();

  void promise(std::size_t n) override;
  void forgo(std::size_t n) noexcept override;
  [[nodiscard]] void* take_promised() noexcept override;
  void give_back(void* page) noexcept override;

  /// Makes `n` free pages take memory now, beside those that others have reserved and not taken.
  /// Throws std::bad_alloc, with nothing changed.
  void reserve(std::size_t n);
  void unreserve(std::size_t n) noexcept;

  /// Has the system take back the memory of all free pages but the reserved ones.
  /// Throws std::bad_alloc, with nothing lost.
  void release();

private:
  /// Free pages in a row that take no memory. Not noted in the first of them, which in huge pages
  /// would take two megabytes.
  struct extent {
    std::byte* begin;
    std::byte* end;
  };

  page_supply() = default;

  [[nodiscard]] std::size_t available() const noexcept { return used_.size() + unused_pages_; }
  [[nodiscard]] void* pop_used() noexcept;
  [[nodiscard]] void* pop_unused() noexcept;
  void grow(std::size_t n);

  spin_lock mutex_;
  free_blocks used_;          ///< free pages that were used and take memory
  std::list<extent> unused_;  ///< all other free pages
  std::list<extent> spent_;   ///< extents that have no page left
  std::size_t unused_pages_ = 0;
  std::size_t promised_ = 0;  ///< of all free pages
  std::size_t reserved_ = 0;
  std::size_t untaken_ = 0;     ///< of the reserved pages
  std::size_t next_slab_ = 16;  ///< pages
};

/// Memory for a number of waits, there as long as this lives.
class reserved_memory {
public:
  /// Throws std::bad_alloc.
  explicit reserved_memory(std::size_t waits);
  reserved_memory(const reserved_memory&) = delete;
  reserved_memory& operator=(const reserved_memory&) = delete;
  ~reserved_memory();

private:
  const std::size_t pages_;
};

}  // namespace asio_wheel::detail
