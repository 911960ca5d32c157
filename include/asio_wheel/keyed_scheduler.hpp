// L3 timers: functions that run later, or again and again, each under a key of its own.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/initiate_wait.hpp>
#include <asio_wheel/detail/timers/scheduled_task.hpp>
#include <asio_wheel/missed_tick.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#if defined(ASIO_WHEEL_STANDALONE)
#include <unordered_set>
#else
#include <boost/unordered/unordered_flat_set.hpp>
#endif

namespace asio_wheel {

namespace detail {
/// Boost's set, where there is Boost. With a million tasks every cache line is a miss. A search in
/// the standard's set touches three more lines, and takes twice as long.
#if defined(ASIO_WHEEL_STANDALONE)
template <class Entry, class Hash, class Equal>
using task_set = std::unordered_set<Entry, Hash, Equal>;
#else
template <class Entry, class Hash, class Equal>
using task_set = boost::unordered_flat_set<Entry, Hash, Equal>;
#endif
}  // namespace detail

/// As `times` of keyed_scheduler::run_every: until the task is cancelled.
inline constexpr std::size_t forever = detail::unlimited_times;

/// Runs functions later, once or repeatedly, each under a key by which it can be cancelled, as Go's
/// timing wheels do (ouqiang/timewheel and its kin).
///
/// A key is **live** while a run of its task is still to come. A second task under a live key is
/// refused. The key is free as the last or only run begins, so that the function may schedule its
/// successor under the key. During an earlier run the key is live, and the function may cancel
/// itself.
///
/// The functions run through the scheduler's executor, never inside one of its members, and several
/// at a time if that executor lets them; but no task runs twice at a time. An exception of a
/// function leaves by the context's `run()`; the other tasks, and later runs of this task, go on.
///
/// Its destructor cancels all tasks, and may be called by one of them. The scheduler may outlive
/// its context, but takes no more tasks then. The context takes the tasks with it.
///
/// Thread safety: distinct and shared objects are safe, except for construction and destruction:
/// several threads may call `Hash` at once. The scheduler holds its lock while it compares keys, so
/// `Equal` must not use the scheduler. It holds no lock while it hashes a key, copies, moves, calls
/// or destroys a function or a key, or starts or ends a wait. `Hash` and `Equal` are called only in
/// the members that take a key, and may throw there.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
class keyed_scheduler {
public:
  using key_type = Key;                         ///< names a task
  using executor_type = asio::any_io_executor;  ///< runs the functions
  using duration = detail::duration;            ///< of the wheel's clock
  using time_point = detail::time_point;        ///< of the wheel's clock

  /// A scheduler without tasks.
  ///
  /// @param place  a wheel, or an executor or context whose wheel to use (see use_wheel).
  /// Exceptions: std::bad_alloc, and what use_wheel() throws.
  explicit keyed_scheduler(wheel_place<> place) : place_(place), tasks_(new task_map(place)) {}
  keyed_scheduler(const keyed_scheduler&) = delete;
  keyed_scheduler& operator=(const keyed_scheduler&) = delete;

  /// Cancels all tasks.
  ~keyed_scheduler() { cancel_all(); }

  /// The executor that runs the functions.
  [[nodiscard]] executor_type get_executor() const noexcept { return place_.executor; }

  /// Runs `f` once, after `delay`. Returns false, with nothing changed, if the key is live.
  /// Once the context is gone, a scheduler on the wheel's own executor destroys `f` and returns
  /// true; do not call this on any other then.
  ///
  /// @param key    names the task.
  /// @param delay  rounded up to the wheel's next tick; zero or less: as soon as possible, as if
  ///               posted.
  /// @param f      called as `f()`; may be movable only. It is destroyed after it ran, or soon
  ///               after it was cancelled.
  /// Errors: the task ends if the wheel has too many waits, and a system_error leaves by `run()`;
  ///   on a thread_pool, where nobody can catch it, that ends the process, as any exception of a
  ///   handler does. The key is live until then. The task also ends if there is no memory for a
  ///   later run's wait, and std::bad_alloc leaves by `run()`. It also ends if the scheduler's
  ///   executor drops the function that brings a run. wheel.cancel_all() ends all tasks, and counts
  ///   them. A task that is running then does not run again.
  /// Exceptions: std::bad_alloc, and what the key and `f` throw; nothing is scheduled then.
  template <detail::task_function F>
  bool run_after(Key key, detail::any_delay delay, F f)
  {
    return add(std::move(key), delay, 1, std::move(f));
  }

  /// Runs `f` after each `period`, `times` in all. Returns false, with nothing changed, if the key
  /// is live.
  ///
  /// The turns are a period apart and do not drift. Turns that pass while the function runs, or
  /// while the context is not run, are skipped and do not count as `times`.
  ///
  /// @param key     names the task.
  /// @param period  more than zero, or std::invalid_argument is thrown.
  /// @param f       called as `f()`; may be movable only. It is destroyed after its last run, or
  ///                soon after it was cancelled.
  /// @param times   at least 1, or std::invalid_argument is thrown.
  /// Errors: as with run_after().
  /// Exceptions: as with run_after().
  template <detail::task_function F>
  bool run_every(Key key, detail::any_delay period, F f, std::size_t times = forever)
  {
    detail::require_positive("keyed_scheduler: period", period);
    if (times == 0)
      throw std::invalid_argument("keyed_scheduler: times is 0; it must be at least 1");
    return add(std::move(key), period, times, std::move(f));
  }

  /// Cancels the task under `key`. Returns true if the key was live: the next run will not begin. A
  /// run that has begun is not interrupted.
  /// Exceptions: here and below, what Hash and Equal throw.
  bool cancel(const Key& key) { return tasks_->cancel(key); }

  /// Cancels all tasks. Returns how many had a run to come. Tasks that other threads start
  /// meanwhile may stay.
  std::size_t cancel_all() noexcept { return tasks_->cancel_all(); }

  /// Moves the next run of a task to `delay` from now, in one step: it does not run before, and its
  /// later turns count from there. Returns false, with nothing changed, if the key is not live, or
  /// wheel.cancel_all() has ended the next run.
  ///
  /// While a function that repeats runs, it may move its next run, and so may another thread.
  ///
  /// @param key  of the task.
  /// @param delay  rounded up to the wheel's next tick; zero or less: as soon as possible.
  bool reschedule(const Key& key, detail::any_delay delay)
  {
    const task_ptr t = tasks_->find(key);
    return t && t->move(delay);
  }

  /// When the next run is, or nothing if the key is not live. While a function runs, its next run
  /// is the run after.
  [[nodiscard]] std::optional<time_point> expiry(const Key& key) const
  {
    const task_ptr t = tasks_->find(key);
    return t ? t->next_turn() : std::nullopt;
  }

  /// Returns true if the key is live.
  [[nodiscard]] bool contains(const Key& key) const { return bool(tasks_->find(key)); }

  /// How many keys are live. The keys of this scheduler's cancel_all() count until it returns,
  /// those of the wheel's cancel_all() until the context has run.
  [[nodiscard]] std::size_t size() const { return tasks_->size(); }

private:
  class task_map;
  struct task;
  using task_ptr = detail::intrusive_ptr<task>;
  using map_ptr = detail::intrusive_ptr<task_map>;

  /// One task. The map and the wait's handler own it; the handlers own the map.
  struct task : detail::scheduled_task, detail::intrusive_ref_counter<task> {
    task(const map_ptr& m, std::size_t h, Key&& k, duration delay, std::size_t times)
      : detail::scheduled_task(m->core(), delay, times),
        map(m),
        hash(h),
        key(std::move(k))
    {}

    const map_ptr map;
    const std::size_t hash;  ///< of the key
    const Key key;
  };

  template <class F>
  struct task_of final : task {
    task_of(const map_ptr& m, std::size_t h, Key&& k, duration delay, std::size_t times, F&& f)
      : task(m, h, std::move(k), delay, times),
        function(std::move(f))
    {}
    void run() override { std::invoke(function); }

    [[no_unique_address]] F function;
  };

  /// The handler of a task's wait. If it is destroyed uncalled, it ends the task: there was no
  /// memory for the wait, an executor has dropped the handler, or the context goes.
  class turn_handler {
  public:
    explicit turn_handler(const task_ptr& t) noexcept : task_(t) {}
    turn_handler(turn_handler&&) noexcept = default;
    turn_handler& operator=(turn_handler&&) = delete;
    ~turn_handler()
    {
      if (!task_) return;
      task_->cancel();
      task_->map->remove(task_);
    }

    void operator()(error_code ec) { turn(std::exchange(task_, nullptr), ec); }

  private:
    task_ptr task_;
  };

  /// The live tasks, and for a moment some that are over. Tasks are made before the lock is taken,
  /// and destroyed after it is released. The set stores each key's hash and never calls `Hash`. It
  /// erases a task by its address. A task is over before its key is free.
  class task_map : public detail::intrusive_ref_counter<task_map> {
  public:
    explicit task_map(const wheel_place<>& place)
      : core_(&detail::core_of(place.wheel)),
        executor_(place.executor, detail::wheel_executor(*core_))
    {}

    [[nodiscard]] detail::wheel_core& core() const noexcept { return *core_; }
    [[nodiscard]] const detail::timer_executor<executor_type>& executor() const noexcept
    {
      return executor_;
    }
    [[nodiscard]] std::size_t hash_of(const Key& key) const { return hash_(key); }

    [[nodiscard]] bool insert(const task_ptr& t)
    {
      for (;;) {
        task_ptr before;
        {
          const std::lock_guard lock(mutex_);
          before = look_up({t->hash, t->key, equal_});
          if (!before || before->is_over()) {
            if (before) tasks_.erase(entry{before->hash, before});
            tasks_.insert(entry{t->hash, t});
            return true;
          }
        }
        if (before->is_live()) return false;
        before->cancel();  // cancel_all() has ended it: now it is over
      }
    }

    /// Call this when the task is over.
    void remove(const task_ptr& t) noexcept
    {
      const std::lock_guard lock(mutex_);
      tasks_.erase(entry{t->hash, t});
    }

    /// The task under the key; null if there is none, or the key is not live.
    [[nodiscard]] task_ptr find(const Key& key) const
    {
      const task_ptr t = owner_of(key);
      return t && t->is_live() ? t : task_ptr();
    }

    bool cancel(const Key& key)
    {
      const task_ptr t = owner_of(key);
      if (!t) return false;
      const bool was_live = t->cancel();
      remove(t);
      return was_live;
    }

    std::size_t cancel_all() noexcept
    {
      leaving all;
      {
        const std::lock_guard lock(mutex_);
        all.tasks.swap(tasks_);
        all.earlier = std::exchange(leaving_, &all);
      }
      std::size_t n = 0;
      for (const entry& e : all.tasks) n += e.owner->cancel() ? 1 : 0;
      const std::lock_guard lock(mutex_);
      leaving** link = &leaving_;
      while (*link != &all) link = &(*link)->earlier;
      *link = all.earlier;
      return n;
    }

    [[nodiscard]] std::size_t size() const
    {
      const std::lock_guard lock(mutex_);
      std::size_t n = tasks_.size();
      for (const leaving* l = leaving_; l; l = l->earlier) n += l->tasks.size();
      return n;
    }

  private:
    struct entry {
      std::size_t hash;
      task_ptr owner;
    };
    struct sought {
      std::size_t hash;
      const Key& key;
      const Equal& equal;
    };
    struct hash_at_hand {
      using is_transparent = void;
      template <class T>
      std::size_t operator()(const T& entry_or_sought) const noexcept
      {
        return entry_or_sought.hash;
      }
    };
    struct same_task {
      using is_transparent = void;
      bool operator()(const entry& a, const entry& b) const noexcept
      {
        return a.owner.get() == b.owner.get();
      }
      bool operator()(const sought& s, const entry& e) const
      {
        return s.hash == e.hash && s.equal(s.key, e.owner->key);
      }
      bool operator()(const entry& e, const sought& s) const { return (*this)(s, e); }
    };
    using task_set = detail::task_set<entry, hash_at_hand, same_task>;

    /// The tasks that a call of cancel_all() is cancelling. The set does not change meanwhile.
    struct leaving {
      task_set tasks;
      leaving* earlier = nullptr;
    };

    [[nodiscard]] task_ptr owner_of(const Key& key) const
    {
      const sought s{hash_(key), key, equal_};
      const std::lock_guard lock(mutex_);
      return look_up(s);
    }

    /// The latest task under a key, or null. Requires the lock.
    [[nodiscard]] task_ptr look_up(const sought& s) const
    {
      const task_set* in = &tasks_;
      for (const leaving* l = leaving_;; l = l->earlier) {
        const auto found = in->find(s);
        if (found != in->end()) return found->owner;
        if (!l) return nullptr;
        in = &l->tasks;
      }
    }

    const detail::intrusive_ptr<detail::wheel_core> core_;
    const detail::timer_executor<executor_type> executor_;
    mutable std::mutex mutex_;
    task_set tasks_;
    leaving* leaving_ = nullptr;
    [[no_unique_address]] Hash hash_;
    [[no_unique_address]] Equal equal_;
  };

  template <class F>
  bool add(Key&& key, duration delay, std::size_t times, F&& f)
  {
    const std::size_t hash = tasks_->hash_of(key);
    const task_ptr t(
      new task_of<F>(tasks_, hash, std::move(key), delay, times, std::forward<F>(f)));
    if (!tasks_->insert(t)) return false;
    start(t);
    return true;
  }

  static void start(const task_ptr& t)
  {
    using initiation =
      detail::initiate_wait<detail::lazy_wait_op, detail::scheduled_task, executor_type>;
    initiation{t.get(), &t->map->executor()}(turn_handler(t));
  }

  /// Runs the task, whose wait has ended, and starts the wait for its next run.
  static void turn(const task_ptr& t, error_code ec)
  {
    if (ec) {
      if (t->is_over()) return;
      t->cancel();
      t->map->remove(t);
      if (ec != asio::error::operation_aborted) throw system_error(ec, "keyed_scheduler");
      return;
    }
    if (!t->is_its_turn()) return start(t);
    if (t->is_over()) {
      t->map->remove(t);
      return t->run();
    }
    try {
      t->run();
    } catch (...) {
      start(t);
      throw;
    }
    start(t);
  }

  const wheel_place<> place_;
  const map_ptr tasks_;
};

}  // namespace asio_wheel
