// L2 service: waits whose deadline moves while they are pending, at the cost of a store.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/service/shard_set.hpp>
#include <asio_wheel/service/wait_op.hpp>
#include <asio_wheel/service/waits_of_timer.hpp>
#include <asio_wheel/service/wheel_clock.hpp>

#include <cstddef>

namespace asio_wheel {

/// A `waits_of_timer` whose deadline is a function of what any thread may store at any time, such
/// as the time of the last sign of life.
///
/// **Lazy.** Whoever puts the deadline off tells nobody. A wait is filed under the deadline known
/// then; when that comes, and the shard pops the wait, it asks again. If the deadline has moved,
/// the wait is filed anew, on the spot: no allocation, no handler, no way through an executor. So
/// each wait is filed once in the time that it takes to expire untouched, however often it is put
/// off. Who brings the deadline forward says so, with hasten().
///
/// **Due is not expired.** Between its tick and its pop a wait can be cancelled as any other; the
/// shard remembers that, and lets it end with operation_aborted when it is popped.
///
/// A class derived from this one cancels in its destructor, or the wheel might ask half an object;
/// and it moves what its deadline consists of in the same critical section as the waits.
class ASIO_WHEEL_EXPORT lazy_waits : protected waits_of_timer {
public:
  using waits_of_timer::cancel;
  using waits_of_timer::shards;

  /// Starts a wait under the present deadline, to be completed at once if that has passed.
  /// All else as waits_of_timer::start().
  void start(timer_wait_op& op);

protected:
  explicit lazy_waits(shard_set& shards) noexcept : waits_of_timer(shards) {}
  ~lazy_waits() = default;

  /// To be called after the deadline was brought forward.
  void hasten() noexcept;

private:
  friend class shard;

  // Asked for with the lock of the waits held, and for a first guess without.

  /// When the waits expire, as things stand.
  [[nodiscard]] virtual time_point deadline() const noexcept = 0;

  /// A wait ends: the deadline has passed by `now`. Says how it ends, with expired or timed_out.
  [[nodiscard]] virtual wait_outcome expire(time_point now) noexcept = 0;

  [[nodiscard]] static lazy_waits& owner_of(const timer_wait_op& op) noexcept
  {
    return static_cast<lazy_waits&>(waits_of_timer::owner_of(op));
  }
  [[nodiscard]] tick present_tick() const noexcept { return shards().clock().tick_for(deadline()); }
};

}  // namespace asio_wheel
