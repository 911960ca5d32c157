// L2 engine: cancels waits, at once or deferred.
#include "shard.hpp"

#include <asio_wheel/detail/engine/op_memory.hpp>

#include "../base/memory.hpp"
#include "probe.hpp"

#include <cstddef>
#include <span>
#include <utility>

namespace asio_wheel::detail {

bool deferred_cancels::is_time(bool is_local) const noexcept
{
  constexpr std::size_t enough = 16;
  return size_ >= enough && (is_local || size_ == most);
}

void deferred_cancels::add(timer_wait_op& op) noexcept
{
  ops_[size_++] = &op;
}

std::span<timer_wait_op*> deferred_cancels::take() noexcept
{
  return {ops_.data(), std::exchange(size_, std::uint8_t{0})};
}

cancels_applied shard::apply_deferred_cancels() noexcept
{
  if (!deferred_.empty()) apply_cancels();
  return {};
}

bool shard::is_all_cancelled(const wait_op& op) const noexcept
{
  return op.sequence_ <= all_cancelled_;
}

std::size_t shard::cancel(wait_op& op) noexcept
{
  apply_deferred_cancels();
  if (is_all_cancelled(op)) {
    unlink_all(op);
    return 0;
  }
  ++cancelled_;
  end_as_cancelled(op);
  unlink_all(op);
  return 1;
}

std::size_t shard::cancel_one(timer_wait_list& waits) noexcept
{
  for (int i = 0; i < step && !waits.empty(); ++i) {
    if (cancel(*waits.front()) != 0) return 1;
  }
  return 0;
}

std::size_t shard::cancel(timer_wait_list& waits, bool is_local) noexcept
{
  timer_wait_op* const only = waits.only();
  if (only && left_of_cancelled_ == 0) {
    if (deferred_.is_time(is_local)) apply_cancels();
    deferred_.add(*only);
    waits.clear();
    ++cancelled_;
    return 1;
  }
  return waits.empty() ? 0 : cancel_some(waits);
}

std::size_t shard::cancel_some(timer_wait_list& waits) noexcept
{
  std::size_t n = 0;
  for (int i = 0; i < step && !waits.empty(); ++i) n += cancel(*waits.front());
  return n;
}

void shard::apply_cancels() noexcept
{
  const std::span<timer_wait_op*> ops = deferred_.take();
  for (timer_wait_op*& op : ops) {
    prefetch((&op)[deferred_cancels::ahead]);
    if (op->large_) prefetch(reinterpret_cast<const std::byte*>(op) + op_line);
    op->next = nullptr;  // unlisted by its timer, which may be gone
    unlink(*op);
    end_as_cancelled(*op);
  }
}

void shard::end_as_cancelled(wait_op& op) noexcept
{
  if (op.state_ == wait_state::filed) {  // if not, it is on its way, and will see the state
    erase(op);
    ended_.push_back(op);
  }
  set_state(op, wait_state::cancelled);
  ASIO_WHEEL_PROBE(cancel, &op, op.ask_, 1);
}

std::size_t shard::cancel_all() noexcept
{
  apply_deferred_cancels();
  while (timer_wait_op* const op = resting_.front()) stop_resting(*op);
  all_cancelled_ = sequence_++;  // operations guarded from here on are later
  const std::uint64_t n = pending();
  if (n == 0) return 0;
  left_of_cancelled_ += n;
  cancelled_ += n;
  wheel_.drain();
  set_next(wheel_.next_tick());
  unneeded_.store(tick{}, std::memory_order_relaxed);
  return static_cast<std::size_t>(n);
}

/// Erases a filed wait from the wheel. Returns true if it was pending.
bool shard::erase(wait_op& op) noexcept
{
  if (is_all_cancelled(op)) {
    wheel_.erase_drained(op);
    return false;
  }
  const maybe_tick unneeded = wheel_.erase(op);
  if (number_resting_ != 0) note_if_idle();
  if (!unneeded || unneeded > later_) return true;
  const maybe_tick next = next_.load(std::memory_order_relaxed);
  if (later_ != next && !is_first(*unneeded, next)) return true;
  if (unneeded < unneeded_.load(std::memory_order_relaxed))
    unneeded_.store(unneeded, std::memory_order_relaxed);
  return true;
}

/// Returns true if the driver may wait for `unneeded`, and for nothing earlier. Drops later_ if it
/// may be unneeded, too.
bool shard::is_first(tick unneeded, maybe_tick next) noexcept
{
  if (next == unknown) return true;
  if (unneeded > next || (later_ && wheel_.is_of_vacant(*later_))) later_ = next;
  return unneeded <= next;
}

}  // namespace asio_wheel::detail
