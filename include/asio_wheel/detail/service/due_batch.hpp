// L2 service: the waits that are due next, in their order, across all shards.
#pragma once

#include <asio_wheel/detail/service/shard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace asio_wheel::detail {

/// Up to 64 waits that have left the wheels and whose handlers have not begun.
///
/// Waits of several shards are due in one order, so that order is made once for a whole batch. Then
/// the threads of the context take one wait at a time: what a thread has not begun is here, where
/// another thread finds it, and so does whoever cancels it. A cell that was cleared by a cancel is
/// passed over.
///
/// The waits are guarded by the locks of their shards, all else by the owner of the batch, whose
/// lock is taken before those of the shards.
class due_batch {
public:
  // Small enough that other I/O of the context does not wait long, large enough that merging and
  // the way through the executor are not felt (bench/README.md).
  static constexpr std::size_t capacity = 64;

  /// `shards`, of which there are max_shards at most.
  explicit due_batch(std::vector<shard*> shards) noexcept : shards_(std::move(shards)) {}

  [[nodiscard]] bool empty() const noexcept { return next_ == size_; }

  /// Something is due in the shards whose bits are set.
  void add_sources(std::uint64_t bits) noexcept { sources_left_ |= bits; }

  /// Whether there may be more to take: here, or in the shards.
  [[nodiscard]] bool may_have_more() const noexcept { return !empty() || sources_left_ != 0; }

  /// The shard of the next wait.
  [[nodiscard]] shard& next_shard() const noexcept { return *sources_[next_]; }

  /// The cell of the next wait, which is thereby taken.
  [[nodiscard]] wheel_entry*& take_cell() noexcept { return cells_[next_++]; }

  /// For the i-th wait to come: its cell, and the shard whose lock guards it.
  [[nodiscard]] std::size_t size() const noexcept { return size_ - next_; }
  [[nodiscard]] wheel_entry* const& cell(std::size_t i) const noexcept { return cells_[next_ + i]; }
  [[nodiscard]] shard& shard_of(std::size_t i) const noexcept { return *sources_[next_ + i]; }

  /// When the waits left their wheels.
  [[nodiscard]] time_point taken_up() const noexcept { return taken_up_; }

  /// Gets the next waits out of the wheels, which are due by `now`. Requires that this is empty.
  /// `renewed`: the earliest tick of those that were filed again instead.
  void fill(time_point now, tick& renewed) noexcept;

  /// How many waits there were in a row, at most.
  [[nodiscard]] std::uint64_t largest_burst() const noexcept { return largest_burst_; }

private:
  const std::vector<shard*> shards_;
  std::array<wheel_entry*, capacity> cells_;
  std::array<shard*, capacity> sources_;  ///< of the waits in the cells
  std::size_t next_ = 0;
  std::size_t size_ = 0;
  std::uint64_t sources_left_ = 0;  ///< shards where something is due
  time_point taken_up_;
  std::uint64_t burst_ = 0;
  std::uint64_t largest_burst_ = 0;
};

}  // namespace asio_wheel::detail
