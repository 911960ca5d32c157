// L2 engine: the strand and the one steady_timer that drive a wheel.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/wheel/wheel_entry.hpp>

#include "../base/locks.hpp"
#include "posting.hpp"
#include "wheel_clock.hpp"

#include ASIO_WHEEL_ASIO(basic_waitable_timer.hpp)

#include <atomic>
#include <cstdint>
#include <memory>

namespace asio_wheel::detail {

/// Makes a pass when something is due, and sleeps until then.
///
/// A **pass** runs on the strand. The timer is set for the tick of the next pass
/// (driver_client). It has a pending wait exactly while there is a next pass, if only at the
/// end of time. This keeps `run()` going.
///
/// A thread of the context that needs an earlier pass sets the timer anew. Any other thread makes a
/// **request** to the strand, one for all requests until the strand serves it. So does a thread
/// when the reason for the next pass goes away. A request cancels the timer's wait, and the wait's
/// completion serves it. Without a wait, the request is posted to the strand. A request for a pass
/// `at_once` is always posted: setting the timer to a past time and back would take system calls.
///
/// If a context does not complete its timers itself, Asio does so in its own thread. There the
/// timer only requests a turn. If the executor refuses the turn, the timer is set to try again.
///
/// While the clock is stopped, the timer waits for the end of time, unless something is due at
/// once. The code that moves the clock does the rest.
///
/// Thread-safe. A closed driver does nothing, and touches neither strand nor timer.
class driver {
public:
  driver(const native_executor& native, asio::execution_context& context, const wheel_clock& clock,
         driver_client& client);

  /// Makes sure of a pass at or before `when`, if that is a tick, for a filed wait.
  void wake_at(maybe_tick when) noexcept;

  /// Makes sure that the strand sets the timer anew after this call.
  void rearm() noexcept;

  /// rearm() in a child of fork(), even if a request was left to a thread that the child does not
  /// have.
  void go_on_in_child() noexcept;

  /// Nothing is left to do at `unneeded`; tick 0 means that nothing is left at all.
  void cancel_wake_up(tick unneeded) noexcept;

  /// The executor has refused the strand's turn: tries again at the next tick.
  void retry_turn() noexcept;

  /// The context is going away. Nobody is behind the gate by then, so nobody can have the lock.
  void close() noexcept ASIO_WHEEL_NO_LOCK_ANALYSIS;

  /// How often the timer fired.
  [[nodiscard]] std::uint64_t wakeups() const noexcept
  {
    return wakeups_.load(std::memory_order_relaxed);
  }

private:
  using strand = asio::strand<inner_executor<>>;
  using timer = asio::basic_waitable_timer<clock_type, asio::wait_traits<clock_type>, strand>;

  static constexpr maybe_tick disarmed{};

  [[gnu::noinline]] void wake_earlier(tick when) noexcept;
  [[gnu::noinline]] void request(bool pass = false, maybe_tick rung = disarmed) noexcept;
  void on_turn(const error_code& ec, maybe_tick when);
  void ring(const error_code& ec, tick when) noexcept;
  [[nodiscard]] bool set_timer() ASIO_WHEEL_EXCLUDES(timer_mutex_);
  [[nodiscard]] bool is_awaited() noexcept;
  [[gnu::noinline, gnu::cold]] void hold_work(bool waits) noexcept;
  void arm(tick when) ASIO_WHEEL_REQUIRES(timer_mutex_);
  void start_timer(tick when) ASIO_WHEEL_REQUIRES(timer_mutex_);

  // These are first, so that they outlive what is in them, and so that the rest stands together.
  task_memory strand_memory_;
  task_memory timer_memory_;

  const wheel_clock& clock_;
  driver_client& client_;
  inner_resources inner_;
  gate gate_;  ///< guards strand and timer, which go with the context
  std::unique_ptr<strand> strand_;

  spin_lock timer_mutex_;
  std::unique_ptr<timer> timer_ ASIO_WHEEL_GUARDED_BY(timer_mutex_);
  maybe_tick armed_ ASIO_WHEEL_GUARDED_BY(timer_mutex_) = disarmed;  ///< what the timer waits for
  bool pass_requested_ ASIO_WHEEL_GUARDED_BY(timer_mutex_) =
    false;  ///< also a pass, not only the timer
  bool turn_refused_ ASIO_WHEEL_GUARDED_BY(timer_mutex_) = false;
  /// Keeps the context running until the retry.
  asio::any_io_executor retry_work_ ASIO_WHEEL_GUARDED_BY(timer_mutex_);

  /// The tick of the next wake-up, for threads that start and end waits. It is `disarmed` while the
  /// driver reads the shards: a wait that the driver misses requests a wake-up itself. It is
  /// `at_once` from a request until then: nobody need request again. Written under the timer's
  /// lock.
  std::atomic<maybe_tick> wake_{disarmed};

  /// True while a request is not served. Written under the timer's lock. The timer's cancelled wait
  /// reads it without the lock.
  std::atomic<bool> requested_{false};
  std::atomic<std::uint64_t> wakeups_{0};

  asio::any_io_executor work_;  ///< while the timer waits, if the context does not count its timers
};

}  // namespace asio_wheel::detail
