// L2 engine: the strand and the one steady_timer that drive a wheel.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/tick.hpp>

#include "../base/locks.hpp"
#include "driver_client.hpp"
#include "posting.hpp"
#include "wheel_clock.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace asio_wheel::detail {

/// Makes a pass when something is due, and sleeps until then.
///
/// A **pass** runs on the strand. The timer is set for the tick of the next one
/// (driver_client.hpp), and has a pending wait of its own exactly while there is one, if only at
/// the end of time: that is what keeps `run()` going.
///
/// Whoever needs an earlier pass sets the timer anew, if the context runs the thread. Otherwise the
/// strand is asked to, once for all that ask before it does. So it is when the reason for the next
/// pass goes away. Such a request cancels the timer's wait, which carries it out as it completes,
/// or is posted to the strand if there is no wait. One for a pass `at_once` is always posted: to
/// set the timer for a time that has passed, and then back, would take system calls.
///
/// In a context that does not complete its timers itself, Asio does so in a thread of its own.
/// There the timer only asks for a turn. If the executor refuses that, the timer is set to ask
/// again.
///
/// While the clock is stopped, the timer waits for the end of time, unless something is due at
/// once: whoever moves the clock takes care of the rest.
///
/// Thread-safe. Once it is closed it touches neither strand nor timer, nor does anything else.
class driver {
public:
  driver(const native_executor& native, asio::execution_context& context, const wheel_clock& clock,
         driver_client& client);

  /// Makes sure of a pass at or before `when`, for a wait that is filed.
  void wake_at(tick when) noexcept;

  /// Makes sure that the timer is set, by the strand, for what there is to do after this call.
  void rearm() noexcept;

  /// In a child of fork(): makes sure of that, also if a thread that the child does not have was
  /// about to see to it.
  void go_on_in_child() noexcept;

  /// Says that nothing is left to do at `unneeded`; at tick 0, that nothing is left at all.
  void cancel_wake_up(tick unneeded) noexcept;

  /// The executor has refused the strand's turn: asks again at the next tick.
  void retry_turn() noexcept;

  /// The context is going away. Nobody is behind the gate by then who could have the lock.
  void close() noexcept ASIO_WHEEL_NO_LOCK_ANALYSIS;

  /// How often the timer fired.
  [[nodiscard]] std::uint64_t wakeups() const noexcept
  {
    return wakeups_.load(std::memory_order_relaxed);
  }

private:
  using strand = asio::strand<inner_executor<>>;
  using timer = asio::basic_waitable_timer<clock_type, asio::wait_traits<clock_type>, strand>;

  static constexpr tick disarmed = no_tick;

  [[gnu::noinline]] void wake_earlier(tick when) noexcept;
  [[gnu::noinline]] void request(bool pass = false, tick rung = disarmed) noexcept;
  void on_turn(const error_code& ec, tick when);
  void ring(const error_code& ec, tick when) noexcept;
  [[nodiscard]] bool set_timer() ASIO_WHEEL_EXCLUDES(timer_mutex_);
  [[nodiscard]] bool is_awaited() noexcept;
  [[gnu::noinline, gnu::cold]] void hold_work(bool waits) noexcept;
  void arm(tick when) ASIO_WHEEL_REQUIRES(timer_mutex_);
  void start_timer(tick when) ASIO_WHEEL_REQUIRES(timer_mutex_);

  // First, so that they outlive what is in them, and the rest stands together.
  task_memory strand_memory_;
  task_memory timer_memory_;

  const wheel_clock& clock_;
  driver_client& client_;
  inner_resources inner_;
  gate gate_;  ///< to the context, and so to strand and timer
  std::unique_ptr<strand> strand_;

  spin_lock timer_mutex_;
  std::unique_ptr<timer> timer_ ASIO_WHEEL_GUARDED_BY(timer_mutex_);
  tick armed_ ASIO_WHEEL_GUARDED_BY(timer_mutex_) = disarmed;        ///< what the timer waits for
  bool pass_requested_ ASIO_WHEEL_GUARDED_BY(timer_mutex_) = false;  ///< not only to set it
  bool turn_refused_ ASIO_WHEEL_GUARDED_BY(timer_mutex_) = false;
  /// Keeps the context running while it is.
  asio::any_io_executor retry_work_ ASIO_WHEEL_GUARDED_BY(timer_mutex_);

  /// What the driver wakes up for, for those who start and end waits. While it looks for that, it
  /// is `disarmed`: a wait that it does not see any more asks for a wake-up of its own. From a
  /// request until it looks, it is `at_once`: nobody need ask again. Written with the timer's lock.
  std::atomic<tick> wake_{disarmed};

  /// Whether a request has been made that has yet to be carried out. Written with the timer's lock.
  /// Read without it by a wait that completes cancelled.
  std::atomic<bool> requested_{false};
  std::atomic<std::uint64_t> wakeups_{0};

  asio::any_io_executor work_;  ///< while the timer waits, if the context does not count that
};

}  // namespace asio_wheel::detail
