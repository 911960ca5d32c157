// L3 roof: the deadline of what is read from a stream, or written to it.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/detail/service/deadline_wait.hpp>
#include <asio_wheel/detail/service/operation_guard.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>

#include <atomic>
#include <utility>

namespace asio_wheel::detail {

/// One of the two directions of a `timed_stream`: when its operation is to end, by the expiry that
/// the user sets and by the limits. The wheel asks for that at any time; all else is used as the
/// stream is.
class ASIO_WHEEL_EXPORT stream_side final : private moving_deadline {
public:
  stream_side() = default;
  stream_side(stream_side&& other) noexcept { *this = std::move(other); }
  stream_side& operator=(stream_side&& other) noexcept;
  ~stream_side() { close(); }

  /// What the operations of a side can do.
  enum class may {
    run,             ///< without a deadline
    run_until_then,  ///< under guard()
    not_run          ///< the deadline has passed
  };

  /// To be asked when an operation is to start.
  [[nodiscard]] may start()
  {
    if (limit_ != duration::max()) apply_limit();
    if (until_.load(std::memory_order_relaxed) == time_point::max()) return may::run;
    return guard_->has_passed() ? may::not_run : may::run_until_then;
  }

  /// Requires that start() has returned run_until_then.
  [[nodiscard]] const guard_ptr& guard() const noexcept { return guard_; }

  /// Sets the expiry of the operations that start from now on, if none is running.
  void expires_at(wheel_core& c, time_point expiry);

  /// Sets how long each may take from now on, and when all have to end.
  void set_limits(wheel_core& c, duration each, time_point end);

private:
  [[nodiscard]] time_point deadline() const noexcept override;
  [[nodiscard]] wait_outcome expire(time_point now) noexcept override;

  void close() noexcept;
  void apply_limit();
  void set(time_point until) noexcept;
  [[nodiscard]] operation_guard& use_guard(wheel_core& c);

  std::atomic<time_point> until_{time_point::max()};
  guard_ptr guard_;  ///< null until there is a deadline
  time_point expiry_ = time_point::max();
  time_point end_ = time_point::max();
  duration limit_ = duration::max();
};

}  // namespace asio_wheel::detail
