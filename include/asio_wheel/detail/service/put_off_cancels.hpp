// L2 service: cancels that are done, but for what has to be done to the wait and the wheel.
#pragma once

#include <asio_wheel/detail/service/wait_op.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace asio_wheel::detail {

/// The waits of timers that were cancelled without a look at them.
///
/// A cancel needs three cache lines that are rarely at hand: the wait's, its cell's in the wheel,
/// and that cell's chunk's. With a hundred thousand waits pending, waiting for them is most of what
/// a cancel takes. So a timer with a single wait asks for that memory ahead of the lock
/// (timer_state.cpp), empties its own list, which it has at hand, and leaves the wait's address
/// here. The rest is done for up to 64 waits in a row, when the memory has come: a third less for
/// each cancel and start at 100,000 waits (bench/LOG.md).
///
/// That is safe because a wait in a timer's list can always be cancelled, and because nobody looks
/// at a wait of the shard before the cancels are carried out: every function of the shard that does
/// begins with settle().
///
/// Guarded by the shard's lock.
class put_off_cancels {
public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Whether it is time to carry out what is here: later for a thread of another shard, whose
  /// caches the waits are not likely to be in.
  [[nodiscard]] bool is_time(bool at_home) const noexcept
  {
    constexpr std::size_t enough = 16;
    return size_ >= enough && (at_home || size_ == ops_.size());
  }

  /// Requires that there is room.
  void add(timer_wait_op& op) noexcept { ops_[size_++] = &op; }

  /// Forgets them, and returns them in order. They stay where they are until the next add().
  [[nodiscard]] std::span<timer_wait_op*> take() noexcept
  {
    return {ops_.data(), std::exchange(size_, std::uint8_t{0})};
  }

private:
  std::uint8_t size_ = 0;
  std::array<timer_wait_op*, 64> ops_;
};

}  // namespace asio_wheel::detail
