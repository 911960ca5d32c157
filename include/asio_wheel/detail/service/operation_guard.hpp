// L2 service: operations that end when a deadline has passed which anybody may put off.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/detail/service/op_memory.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>

#include <atomic>
#include <cstddef>

namespace asio_wheel::detail {

/// The operations that one moving deadline guards, and the one lazy wait that stands for all.
///
/// To guard an operation is to put its deadline (deadline_wait.hpp) into a list. It is **guarded**
/// then, and the wheel knows nothing of it. What the wheel has is the guard's own wait, which is
/// filed while the list is not empty, or the handler of the last operation in it is running: for
/// that most often starts the next one. When the wait expires, every deadline in the list is filed
/// as due, and from there lives as any other. It is asked once more when it begins, and goes back
/// into the list if the deadline was put off meanwhile.
///
/// Counted: by whoever owns the deadline, by each operation until it ends, by tokens, and by the
/// wheel while the wait is filed. So operations and owner may go in any order. When the owner or
/// the context goes, the operations go on unguarded, even those that were about to be cancelled:
/// often the socket goes with the owner, and Asio does not allow to cancel an operation of a socket
/// that is gone.
///
/// The lock of `at()` guards everything here.
class ASIO_WHEEL_EXPORT operation_guard final : public unlinked<lazy_wait_op>,
                                                private moving_deadline,
                                                public intrusive_ref_counter<operation_guard> {
public:
  operation_guard(wheel_core& c, const moving_deadline& source);
  operation_guard(const operation_guard&) = delete;
  operation_guard& operator=(const operation_guard&) = delete;
  ~operation_guard() = default;

  [[nodiscard]] home& at() const noexcept { return home_; }
  [[nodiscard]] wheel_core& core() const noexcept { return *core_; }

  /// Whether the deadline has passed, as far as that can be told without a look at the clock while
  /// the wait is filed.
  [[nodiscard]] bool has_passed() const noexcept
  {
    return !filed_.load(std::memory_order_relaxed) && is_over();
  }

  /// Whether there are operations.
  [[nodiscard]] bool is_busy() const noexcept
  {
    if (!filed_.load(std::memory_order_relaxed)) return false;
    home_.lock();
    const bool busy = !guarded_.empty();
    home_.unlock();
    return busy;
  }

  /// Whether the wait may be filed for later than `deadline`, which has just been stored, in a
  /// total order: then the wheel learns of it by hasten() only.
  [[nodiscard]] bool is_filed_after(time_point deadline) const noexcept
  {
    return deadline < answer_.load();
  }

  /// Guards the deadline of an operation. Returns a tick to wake up at, or no_tick.
  [[nodiscard]] tick add(section& s, wait_op& deadline) noexcept;

  /// The same if the wait is filed, so that there is no more to it. Whether it was. Requires the
  /// lock.
  [[nodiscard]] bool add_next(wait_op& deadline) noexcept
  {
    if (!filed_.load(std::memory_order_relaxed)) return false;
    shard::guard(deadline, guarded_);
    return true;
  }

  /// The same for one that is due and about to begin, if the deadline has been put off or is gone.
  /// Whether it has. Requires the lock.
  [[nodiscard]] bool take_back(wait_op& deadline, tick& renewed) noexcept;

  /// The deadline was brought forward.
  void hasten() noexcept;

  /// Takes the wait out of the wheel, if there is nothing to guard. To be called behind the handler
  /// of an operation that has ended.
  void rest() noexcept
  {
    home_.lock();
    const bool at_rest = guarded_.empty();
    home_.unlock();
    if (at_rest) take_out_if_at_rest();
  }

  /// `source` takes the place of the deadline there was so far.
  void move_to(const moving_deadline& source) noexcept;

  /// The deadline goes away. What was started under it goes on, and so does what still will be.
  void close() noexcept;

  static void* operator new(std::size_t size)
  {
    return allocate_op(size, alignof(operation_guard));
  }
  static void operator delete(void* p, std::size_t size) noexcept
  {
    deallocate_op(p, size, alignof(operation_guard));
  }

private:
  [[nodiscard]] time_point deadline() const noexcept override;
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;

  static void do_end(wait_op& base, home&, wait_outcome outcome, time_point taken_up);

  [[nodiscard, gnu::noinline]] bool is_over() const noexcept;
  void take_out_if_at_rest() noexcept;
  [[nodiscard]] bool take_out() noexcept;

  const intrusive_ptr<wheel_core> core_;
  home& home_;
  const moving_deadline* source_;   ///< null: it is gone
  std::atomic<bool> filed_{false};  ///< the wait has yet to end. Read without the lock for hints
  mutable std::atomic<time_point> answer_{time_point::max()};  ///< what the wheel was told last
  wait_list guarded_;
};

}  // namespace asio_wheel::detail
