// L2 service: a lock, a wheel and the counters of what went through it.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/ground/spin_lock.hpp>
#include <asio_wheel/service/batch.hpp>
#include <asio_wheel/service/huge_pages.hpp>
#include <asio_wheel/service/task_memory.hpp>
#include <asio_wheel/service/wait_op.hpp>
#include <asio_wheel/service/wheel_clock.hpp>
#include <asio_wheel/service/wheel_stats.hpp>
#include <asio_wheel/wheel/timing_wheel.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace asio_wheel {

class shard_set;

/// One of the independent parts of a wheel. A thread starts all its waits in one shard, so that
/// threads keep out of each other's way.
///
/// All is guarded by the lock, which is best taken through a `shard_section`. No user code runs
/// while it is held: waits leave through queues, and are completed or destroyed after.
class alignas(128) shard {
public:
  shard(shard_set& set, wheel_geometry geometry) : wheel_(geometry, huge_page_resource()), set_(set)
  {}

  [[nodiscard]] shard_set& set() const noexcept { return set_; }

  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }

  // All that follows requires the lock.

  /// Whether the context is going away: no wait may be filed any more.
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

  /// Files a new wait. Throws std::bad_alloc, with nothing changed.
  void file(wait_op& op, tick when);

  /// Whether a filed wait has not expired yet, and so can be cancelled. A lazy one that is due may
  /// well not have: that is decided when it is popped.
  [[nodiscard]] bool is_pending(const wait_op& op) const noexcept
  {
    return op.lazy_ || !wheel_.is_due(op);
  }

  /// Files a lazy wait anew if it is not due and filed for later than `when`.
  void hasten(wait_op& op, tick when) noexcept;

  /// Sees to it that no wait which is due now is filed again; one that would be is cancelled.
  void end_renewals() noexcept { last_unrenewed_ = stamp_; }

  /// A wait that is pending; nullptr if there is none.
  [[nodiscard]] wait_op* front() noexcept
  {
    settle();
    return static_cast<wait_op*>(wheel_.front());
  }

  /// The same for a wait that was filed under `when`, without a look at it. May say no where
  /// is_pending() would say yes.
  [[nodiscard]] bool is_surely_pending(tick when) const noexcept { return when > pending_after_; }

  /// Carries out the cancels that were put off.
  [[gnu::noinline]] void settle() noexcept;

  /// Moves the wheel to `now`. What is due by then waits for pop_expired(), and that for expire().
  void advance(tick now) noexcept
  {
    settle();
    unneeded_.store(no_tick, std::memory_order_relaxed);
    wheel_.advance(now);
    note_progress();
  }

  /// Moves the wheel back to `now`, if it is ahead of that. What has expired, has expired.
  void rewind(tick now) noexcept
  {
    settle();
    if (now < wheel_.now()) wheel_.rewind(now);
    note_progress();
  }

  [[nodiscard]] bool has_expired() const noexcept { return wheel_.has_due(); }
  [[nodiscard]] wait_op* front_expired() noexcept
  {
    return static_cast<wait_op*>(wheel_.front_due());
  }

  /// The next wait that is due. Nothing if it is a lazy one whose deadline has moved: that is filed
  /// again, and its tick noted if it is earlier than `renewed`.
  [[nodiscard]] wait_op* pop_expired(time_point now, tick& renewed) noexcept;

  /// Cuts an expired wait's ties. Of any shard, if that is locked; so that it can be asked for
  /// ahead of time what is needed to do so.
  static void expire(wait_op& op) noexcept;
  static void prefetch_ties(const wait_op& op) noexcept;

  [[nodiscard]] bool idle() const noexcept { return wheel_.empty(); }

  /// Whether waits that ended without expiring are yet to be completed, by a function that is
  /// posted, or that another thread is about to post.
  [[nodiscard]] bool is_ending_waits() const noexcept { return ready_posted_; }

  [[nodiscard]] tick next_tick() const noexcept { return wheel_.next_tick(); }

  /// Takes a pending wait out, for the caller to keep. Whether tell_driver() is to be called later.
  [[nodiscard]] bool withdraw(wait_op& op) noexcept;

  /// Takes all waits out, for the caller to destroy, and lets no new ones in.
  void close(wait_queue& all) noexcept;

  [[nodiscard]] std::uint64_t pending() const noexcept
  {
    return started_ - expired_ - cancelled_ - destroyed_;
  }
  void add_to(wheel_stats& stats) const noexcept;

  /// Orders two waits of one tick by their start, as far as any thread can tell.
  [[nodiscard]] static bool expires_before(const wait_op& a, const wait_op& b) noexcept
  {
    return a.due() != b.due() ? a.due() < b.due() : a.stamp_ < b.stamp_;
  }

  /// Tells the driver about the slots that waits were withdrawn from, unless waits that were filed
  /// since are to be woken for no later. Takes the lock, if there is anything to tell.
  [[gnu::noinline]] ASIO_WHEEL_EXPORT void tell_driver() noexcept;

private:
  friend class shard_section;
  friend class cancel_link;

  [[nodiscard]] static cancel_link* link_of(const wait_op& op) noexcept;

  /// Cut a wait's ties, so that nobody can find it any more.
  static void drop_link(wait_op& op) noexcept;
  static void detach(wait_op& op, bool expired) noexcept;

  /// Takes note of what is surely pending, after the wheel has moved or what was due has left.
  void note_progress() noexcept { pending_after_ = wheel_.has_due() ? no_tick : wheel_.now(); }

  [[nodiscard]] bool renew(wait_op& op, time_point now, tick& renewed) noexcept;
  void cancel(wait_op& op) noexcept;
  void cancel_later(timer_wait_op& op) noexcept;
  [[nodiscard]] bool is_time_to_settle() const noexcept;
  void take_out(wait_op& op) noexcept;
  bool erase(wait_op& op) noexcept;
  void condemn(wait_op& op) noexcept;
  void make_ready(wait_op& op, wait_outcome outcome) noexcept;

  /// What the driver is to be told: the tick it need not wake up for; tick 0 if for none at all;
  /// no_tick if nothing.
  [[nodiscard]] tick take_unneeded() noexcept
  {
    const tick unneeded = unneeded_.load(std::memory_order_relaxed);
    if (unneeded == no_tick) return no_tick;
    unneeded_.store(no_tick, std::memory_order_relaxed);
    return wheel_.empty() ? tick{} : unneeded;
  }

  void post_ready() noexcept;
  void complete_ready();

  // What a start and a cancel of a timer write, but for the wheel and the list below, and what such
  // a cancel has to know of the wheel, is in one cache line, for the sake of threads that come here
  // to cancel what was started by another.
  spin_lock mutex_;
  bool ready_posted_ = false;  ///< complete_ready() is on its way, or about to be
  bool closed_ = false;
  std::uint8_t put_off_count_ = 0;
  std::uint64_t stamp_ = 0;  ///< of the latest start
  std::uint64_t started_ = 0;
  std::uint64_t cancelled_ = 0;
  wait_queue ready_;      ///< waits that ended without expiring
  tick pending_after_{};  ///< what is_surely_pending() needs of wheel_

  /// The earliest tick that a wait which was taken out alone was to be woken for, if the driver is
  /// still to be told. Read without the lock by tell_driver().
  std::atomic<tick> unneeded_{no_tick};

  /// Timers' waits that are cancelled, but for what has to be done to them and the wheel: by then,
  /// the memory that takes, asked for in time, will have come. A thread of another shard leaves it
  /// to those of this one, who are likely to have that memory.
  std::array<timer_wait_op*, 64> put_off_;

  timing_wheel wheel_;

  // What everybody reads, and what is written once in a while.
  alignas(64) shard_set& set_;
  std::uint64_t expired_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t destroyed_ = 0;       ///< while pending, with the context
  std::uint64_t last_unrenewed_ = 0;  ///< stamp of the last wait that end_renewals() speaks of
  log2_histogram lateness_;
  task_memory ready_memory_;
};

/// A critical section on a shard. What it leaves to be done, posting completions and telling the
/// driver about slots that are needed no longer, is done after the lock is released.
class shard_section {
public:
  explicit shard_section(shard& s) noexcept : shard_(s) { s.lock(); }
  shard_section(shard& s, std::adopt_lock_t) noexcept : shard_(s) {}
  shard_section(const shard_section&) = delete;
  shard_section& operator=(const shard_section&) = delete;
  ~shard_section()
  {
    if (unfinished_)
      finish();
    else
      shard_.unlock();
  }

  /// Ends a pending wait with operation_aborted.
  void cancel(wait_op& op) noexcept;

  /// The same for one whose timer has let go of it, without a look at it.
  void cancel_later(timer_wait_op& op) noexcept;

  /// Refuses a wait that was not filed, with too_many_pending.
  void reject(wait_op& op) noexcept;

  /// Destroys a wait that was not filed. At most one in a section.
  void destroy(wait_op& op) noexcept
  {
    unfinished_ = true;
    destroyed_ = &op;
  }

private:
  [[gnu::noinline]] void finish() noexcept;

  shard& shard_;
  bool unfinished_ = false;  ///< something is left to be done
  wait_op* destroyed_ = nullptr;
  std::size_t cancelled_ = 0;
};

}  // namespace asio_wheel
