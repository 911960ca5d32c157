// L2 service: the waits that are due next, in their order, across all shards.
#pragma once

#include <asio_wheel/detail/service/shard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// Up to 64 waits that have left the wheels and whose handlers have not begun.
///
/// Waits of several shards are due in one order, so that order is made once for a whole batch: a
/// merge of the shards' queues, which locks one shard at a time. Then the threads of the context
/// take one wait at a time: what a thread has not begun is here, where another thread finds it, and
/// so does whoever cancels it. A cell that was cleared by a cancel is passed over.
///
/// The waits are guarded by the locks of their shards, all else by the owner of the batch, whose
/// lock is taken before those of the shards.
class due_batch {
public:
  // Small enough that other I/O of the context does not wait long, large enough that merging and
  // the way through the executor are not felt.
  static constexpr std::size_t capacity = 64;

  [[nodiscard]] bool empty() const noexcept { return next_ == size_; }

  /// Something is due in a shard, the wheel's `number`th of max_shards at most.
  void add_source(shard& s, std::size_t number) noexcept;

  /// Whether there may be more to take: here, or in the shards.
  [[nodiscard]] bool may_have_more() const noexcept { return !empty() || sources_size_ != 0; }

  /// The shard of the next wait.
  [[nodiscard]] shard& next_shard() const noexcept { return *shards_[next_]; }

  /// The cell of the next wait, which is thereby taken.
  [[nodiscard]] wheel_entry*& take_cell() noexcept { return cells_[next_++]; }

  /// For the i-th wait to come: its cell, and the shard whose lock guards it.
  [[nodiscard]] std::size_t size() const noexcept { return size_ - next_; }
  [[nodiscard]] wheel_entry* const& cell(std::size_t i) const noexcept { return cells_[next_ + i]; }
  [[nodiscard]] shard& shard_of(std::size_t i) const noexcept { return *shards_[next_ + i]; }

  /// When the waits left their wheels.
  [[nodiscard]] time_point taken_up() const noexcept { return taken_up_; }

  /// Gets the next waits out of the wheels, which are due by `now`. Requires that this is empty.
  /// `renewed`: the earliest tick of those that were filed again instead.
  void fill(time_point now, tick& renewed) noexcept;

  /// How many waits there were in a row, at most.
  [[nodiscard]] std::uint64_t largest_burst() const noexcept { return largest_burst_; }

private:
  /// A shard in which something is due.
  struct source {
    /// Not after that of the shard's first wait: as it was when the shard was last looked at, or
    /// the beginning of time.
    due_key first;
    shard* at;
    std::size_t number;
  };
  [[nodiscard]] static bool comes_later(const source& a, const source& b) noexcept
  {
    return b.first < a.first;
  }

  void push(const source& s) noexcept;
  [[nodiscard]] source pop() noexcept;
  [[nodiscard]] bool take_run(source& s, std::size_t& room, tick& renewed) noexcept;

  std::array<wheel_entry*, capacity> cells_;
  std::array<shard*, capacity> shards_;  ///< of the waits in the cells
  std::size_t next_ = 0;
  std::size_t size_ = 0;
  std::array<source, max_shards> sources_;  ///< a heap: the one that comes first is in front
  std::size_t sources_size_ = 0;
  std::uint64_t is_source_ = 0;  ///< a bit for each shard
  time_point taken_up_;
  std::uint64_t burst_ = 0;
  std::uint64_t largest_burst_ = 0;
};

}  // namespace asio_wheel::detail
