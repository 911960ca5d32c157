// L2 service: the shards of one wheel, and what they have in common.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/service/driver.hpp>
#include <asio_wheel/service/native_executor.hpp>
#include <asio_wheel/service/shard.hpp>
#include <asio_wheel/service/wheel_clock.hpp>
#include <asio_wheel/service/wheel_options.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace asio_wheel {

/// The stamp of the latest wait that this thread started, in whichever wheel (see shard::file).
[[nodiscard]] std::uint64_t& this_thread_stamp() noexcept;

/// All the shards of a wheel. Counted by the service and by every timer, so that a timer may
/// outlive its context: it then finds the shards closed.
class ASIO_WHEEL_EXPORT shard_set : public boost::intrusive_ref_counter<shard_set> {
public:
  shard_set(const asio::any_io_executor& ex, const wheel_options& options);
  ~shard_set();  // not in every user's code: what it takes apart is hidden in a shared library

  [[nodiscard]] const wheel_options& options() const noexcept { return options_; }
  [[nodiscard]] const wheel_clock& clock() const noexcept { return clock_; }
  [[nodiscard]] const asio::any_io_executor& executor() const noexcept { return executor_; }

  /// To be called before the first wait is started. The driver may go once the set is closed.
  void set_driver(driver& d) noexcept { driver_ = &d; }

  /// The shard in which this thread starts its waits.
  [[nodiscard]] shard& local() noexcept;

  /// Start a wait; the set owns it from here on.
  /// Throw what allocating or posting throws, with nothing changed and the wait not taken over.
  void start(wait_op& op, duration delay);
  void start(wait_op& op, time_point deadline);

  // A start in its parts, for those who have something to do in the same critical section.

  /// To be called before filing: makes sure of a wake-up for `when`. Throws what posting throws.
  void prepare(tick when)
  {
    if (driver* d = driver_) d->wake_at(when);
  }

  /// Files the wait, refuses it if there are too many, or destroys it if the shards are closed.
  /// Whether it was filed. Throws std::bad_alloc, with nothing changed.
  [[nodiscard]] bool file(shard& s, shard_section& section, wait_op& op, tick when);

  /// To be called after filing: makes sure of a wake-up once more, in case the one that was
  /// prepared came before the wait was there.
  void confirm(tick when) noexcept
  {
    if (driver* d = driver_) d->insist_on(when);
  }

  /// Says that nothing is left to wake up for at `unneeded`.
  void forget_wakeup(tick unneeded) noexcept
  {
    if (driver* d = driver_) d->forget(unneeded);
  }

  /// Moves all wheels to the present and posts the completion of what expired. Returns the next
  /// tick to wake up for; nothing if no wait is pending. To be called by the driver's pass alone.
  [[nodiscard]] std::optional<tick> advance();

  // For virtual_time, which takes care that one thread at a time moves a clock that is stopped.

  /// Stops the clock at its present reading. Whether it was running.
  [[nodiscard]] bool stop_clock() noexcept;

  /// Moves the stopped clock and the wheels to the next time at which a wait is due, and posts the
  /// completion of what expired. Returns false, and goes no further than `limit`, if that comes
  /// first.
  [[nodiscard]] bool step_clock(time_point limit) noexcept;

  /// Moves the stopped clock to `t`, by which nothing is due that has not expired.
  void move_clock(time_point t) noexcept { clock_.stop_at(t); }

  /// To be called when the clock will not be moved for a while: what has been left out for the
  /// sake of fast steps is made up for.
  void rest_clock() noexcept;

  /// Lets the clock run. If that takes it back, the wheels go back with it.
  void start_clock() noexcept;

  /// Keeps the count that max_pending is compared with.
  void count_ended(std::size_t n) noexcept
  {
    if (options_.max_pending != 0) pending_.fetch_sub(n, std::memory_order_relaxed);
  }

  [[nodiscard]] const native_executor& native() const noexcept { return native_; }

  std::size_t cancel_all();
  [[nodiscard]] std::size_t pending() const noexcept;
  [[nodiscard]] wheel_stats stats() const noexcept;

  /// Lets no new wait in and destroys those there are. May be repeated.
  void close() noexcept;

private:
  struct outlook {
    bool expired = false;  ///< there are waits to complete
    bool idle = true;      ///< there are no others
    bool ending = false;   ///< there are others that ended but were not completed
    tick next = never;     ///< to wake up for

    void add(const shard& s) noexcept;
  };

  [[gnu::flatten]] void start(wait_op& op, tick when);

  [[nodiscard]] outlook look_ahead() noexcept;
  [[nodiscard]] outlook advance_shards(tick now) noexcept;
  void post_expired() noexcept;
  void complete_expired();
  [[nodiscard]] bool take_expired(batch& waits, tick& renewed);

  const wheel_options options_;
  const asio::any_io_executor executor_;
  const native_executor native_;
  wheel_clock clock_;
  std::atomic<driver*> driver_{nullptr};  ///< null once the set is closed
  std::vector<std::unique_ptr<shard>> shards_;
  std::atomic<std::size_t> pending_{0};  ///< kept only if there is a limit to it

  spin_lock advance_mutex_;  ///< keeps clock and wheels in step; taken before the shards' locks

  // Guarded by expired_mutex_, which is taken before the shards' locks: completions of expired
  // waits, which have to leave in order even when they come from several shards.
  mutable spin_lock expired_mutex_;
  wait_queue unfinished_;    ///< left over by a batch whose handler threw
  std::uint64_t burst_ = 0;  ///< completed since there was nothing to complete
  std::uint64_t largest_burst_ = 0;

  std::atomic<bool> expired_posted_{false};  ///< complete_expired() is on its way
  std::atomic<int> completions_{0};          ///< how often it is running
  task_memory expired_memory_;
};

}  // namespace asio_wheel
