// L2 service: the strand and the one steady_timer that drive a wheel.
#pragma once

#include <asio_wheel/ground/tick.hpp>
#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/posting_executor.hpp>
#include <asio_wheel/service/task_memory.hpp>
#include <asio_wheel/service/wheel_clock.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <cstdint>

namespace asio_wheel {

class shard_set;

/// Advances the shards when something is due, and sleeps until then.
///
/// A **pass** runs on the strand: it advances every shard to now and sets the timer for the
/// earliest tick that any of them names. The timer has a pending wait of its own exactly while
/// the wheel has one, if only for the end of time; that is what keeps `run()` going, and where the
/// last waits were cancelled, further passes until their completion is posted. Between passes the
/// timer is left alone, unless a wait comes up for an earlier tick or the wait it was set for goes
/// away: then a pass is requested, once for all that ask before it runs.
///
/// While the clock is stopped, the timer waits for the end of time, and passes are requested only
/// for what is due at once: whoever moves the clock takes care of the rest.
class driver {
public:
  driver(shard_set& shards, asio::execution_context& context);

  /// Makes sure of a pass at or before `when`. Throws what posting to a strand throws.
  void wake_at(tick when)
  {
    if (when < wake_.load(std::memory_order_relaxed)) request_pass();
  }

  /// The same for a wait that is already filed: tries again until it succeeds.
  void insist_on(tick when) noexcept
  {
    if (when < wake_.load(std::memory_order_relaxed)) insist();
  }

  /// Makes sure of a pass.
  [[gnu::noinline, gnu::cold]] void insist() noexcept;

  /// Says that a slot which was to be woken for at `unneeded` is empty, tick 0 if all are.
  /// If the pass that would set the timer anew cannot be posted, it fires once in vain.
  void forget(tick unneeded) noexcept;

  [[nodiscard]] std::uint64_t wakeups() const noexcept
  {
    return wakeups_.load(std::memory_order_relaxed);
  }

private:
  using strand = asio::strand<posting_executor>;
  using timer = asio::basic_waitable_timer<clock_type, asio::wait_traits<clock_type>, strand>;

  static constexpr tick disarmed = no_tick;

  [[gnu::noinline]] void request_pass();
  void pass();
  void arm(tick when);

  shard_set& shards_;
  task_memory memory_;
  strand strand_;
  timer timer_;            ///< on the strand
  tick armed_ = disarmed;  ///< what timer_ waits for; on the strand

  /// `armed_`, for those who start waits. During a pass it is `disarmed`, so that a wait which the
  /// pass does not see any more asks for another.
  std::atomic<tick> wake_{disarmed};
  std::atomic<bool> pass_requested_{false};
  std::atomic<std::uint64_t> wakeups_{0};
};

}  // namespace asio_wheel
