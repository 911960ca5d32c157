// L3 roof: functions that run later, or again and again, each under a key of its own.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/roof/hash_set.hpp>
#include <asio_wheel/detail/roof/scheduled_task.hpp>
#include <asio_wheel/detail/roof/tick_after.hpp>
#include <asio_wheel/detail/service/core.hpp>
#include <asio_wheel/detail/service/wait_handler.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

namespace asio_wheel {

/// As `times` of keyed_scheduler::run_every: until it is cancelled.
inline constexpr std::size_t forever = detail::unlimited_times;

/// Runs functions later, once or repeatedly, each under a key by which it can be cancelled, as Go's
/// timing wheels do (ouqiang/timewheel and its kin).
///
/// A key is **live** while a run of its task is still to come. A second task under a live key is
/// refused. As the last or only run begins the key is free, so that the function may schedule its
/// successor under it; while an earlier one runs it is live, and the function may cancel itself.
///
/// The functions run through the scheduler's executor, never inside one of its members, and several
/// at a time if that executor lets them; but no task runs twice at a time. A function that throws
/// does so out of the context's `run()`; the other tasks, and the further runs of the same, go on.
///
/// Its destructor cancels all tasks, and may be called by one of them. It may outlive its context,
/// but must not be given more tasks then.
///
/// Thread safety: a distinct object is safe, and so is a shared one, other than for construction
/// and destruction. A lock is held while keys are hashed and compared, so `Hash` and `Equal` must
/// not use the scheduler; it is not while a function or a key is copied, moved, called or
/// destroyed.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
class keyed_scheduler {
public:
  using key_type = Key;                         ///< by which a task is known
  using executor_type = asio::any_io_executor;  ///< that of the functions
  using duration = detail::duration;            ///< of the wheel's clock
  using time_point = detail::time_point;        ///< of the wheel's clock

  /// A scheduler without tasks.
  ///
  /// @param place  the wheel, or an executor or context whose wheel it is to be (see use_wheel).
  /// Exceptions: std::bad_alloc, and what use_wheel() throws.
  explicit keyed_scheduler(wheel_place<> place) : place_(place), tasks_(new task_map(place)) {}
  keyed_scheduler(const keyed_scheduler&) = delete;
  keyed_scheduler& operator=(const keyed_scheduler&) = delete;

  /// Cancels all tasks.
  ~keyed_scheduler() { tasks_->clear(); }

  /// The executor that runs the functions.
  [[nodiscard]] executor_type get_executor() const noexcept { return place_.executor; }

  /// Runs `f` once, after `delay`. Returns false, with nothing changed, if the key is live.
  ///
  /// @param key    by which it can be cancelled.
  /// @param delay  rounded up to the wheel's next tick; zero or less: as soon as possible, as if
  ///               posted.
  /// @param f      called as `f()`; may be movable only. It is destroyed after it ran, or soon
  ///               after it was cancelled.
  /// Errors: if the wheel has too many waits or ends them all, the task is gone; for the former,
  ///   system_error leaves by `run()`. So does std::bad_alloc, with the task, if there is no memory
  ///   for a later run's wait.
  /// Exceptions: std::bad_alloc, and what the key and `f` throw; nothing is scheduled then.
  template <detail::task_function F>
  bool run_after(Key key, duration delay, F f)
  {
    return add(task_ptr(new task_once<F>(tasks_, std::move(key), delay, std::move(f))));
  }

  /// Runs `f` after each `period`, `times` in all. Returns false, with nothing changed, if the key
  /// is live.
  ///
  /// The turns are a period apart and do not drift. Those that pass while the function runs, or
  /// while the context is not run, are skipped, and do not count as one of the `times`.
  ///
  /// @param key     by which it can be cancelled.
  /// @param period  more than zero, or std::invalid_argument is thrown.
  /// @param f       called as `f()`; may be movable only. It is destroyed after its last run, or
  ///                soon after it was cancelled.
  /// @param times   at least 1, or std::invalid_argument is thrown.
  /// Errors: as with run_after().
  /// Exceptions: as with run_after().
  template <detail::task_function F>
  bool run_every(Key key, duration period, F f, std::size_t times = forever)
  {
    detail::require_positive("keyed_scheduler: period", period);
    if (times == 0)
      throw std::invalid_argument("keyed_scheduler: times is 0; it must be at least 1");
    return add(task_ptr(new repeated_task<F>(tasks_, std::move(key), period, std::move(f), times)));
  }

  /// Cancels the task under `key`. Returns whether there was one: a run was still to come, and will
  /// not begin any more. One that has begun is not interrupted.
  /// Exceptions: here and below, what Hash and Equal throw.
  bool cancel(const Key& key) { return tasks_->cancel(key); }

  /// Moves the next run of a task to `delay` from now, in one step: it does not run before, and its
  /// turns are counted from there. Returns false, with nothing changed, if the key is not live, or
  /// wheel.cancel_all() has ended the run that was to come.
  ///
  /// A function that repeats may move its own next run, and another thread may while it runs.
  ///
  /// @param key  of the task.
  /// @param delay  rounded up to the wheel's next tick; zero or less: as soon as possible.
  bool reschedule(const Key& key, duration delay) { return tasks_->reschedule(key, delay); }

  /// When the next run is, or nothing if the key is not live. While a function that repeats runs,
  /// that is the one after.
  [[nodiscard]] std::optional<time_point> expiry(const Key& key) const
  {
    return tasks_->expiry(key);
  }

  /// Whether the key is live.
  [[nodiscard]] bool contains(const Key& key) const { return tasks_->contains(key); }

  /// How many keys are live.
  [[nodiscard]] std::size_t size() const { return tasks_->size(); }

private:
  class task_map;
  struct task;
  using task_ptr = detail::intrusive_ptr<task>;
  using map_ptr = detail::intrusive_ptr<task_map>;

  /// One task. The map and the wait's handler own it; those who wait own the map.
  struct task : detail::scheduled_task, detail::intrusive_ref_counter<task> {
    task(const map_ptr& m, Key&& k, duration delay)
      : detail::scheduled_task(m->core(), delay),
        map(m),
        key(std::move(k))
    {}

    const map_ptr map;
    const Key key;
  };

  template <class F>
  struct task_once : task {
    task_once(const map_ptr& m, Key&& k, duration delay, F&& f)
      : task(m, std::move(k), delay),
        function(std::move(f))
    {}
    void run() override { std::invoke(function); }

    [[no_unique_address]] F function;
  };

  template <class F>
  struct repeated_task final : task_once<F> {
    repeated_task(const map_ptr& m, Key&& k, duration period, F&& f, std::size_t times)
      : task_once<F>(m, std::move(k), period, std::move(f)),
        to_come{period, times}
    {}
    detail::task_turns* turns() noexcept override { return &to_come; }

    detail::task_turns to_come;
  };

  /// Tasks by their keys, which they have in them.
  struct hash_key {
    using is_transparent = void;

    std::size_t operator()(const Key& key) const { return hash(key); }
    std::size_t operator()(const task_ptr& t) const { return hash(t->key); }

    [[no_unique_address]] Hash hash;
  };
  struct equal_keys {
    using is_transparent = void;

    bool operator()(const task_ptr& a, const task_ptr& b) const { return equal(a->key, b->key); }
    bool operator()(const Key& a, const task_ptr& b) const { return equal(a, b->key); }
    bool operator()(const task_ptr& a, const Key& b) const { return equal(a->key, b); }

    [[no_unique_address]] Equal equal;
  };

  /// The live tasks. They are made before the lock is taken, and destroyed after it is released.
  class task_map : public detail::intrusive_ref_counter<task_map> {
  public:
    explicit task_map(const wheel_place<>& place)
      : core_(&detail::core_of(place.wheel)),
        executor_(place.executor, core_->executor)
    {}

    [[nodiscard]] detail::wheel_core& core() const noexcept { return *core_; }
    [[nodiscard]] const detail::timer_executor<executor_type>& executor() const noexcept
    {
      return executor_;
    }

    [[nodiscard]] bool insert(const task_ptr& t)
    {
      const std::lock_guard lock(mutex_);
      return tasks_.insert(t).second;
    }

    /// What comes of a wait that is over.
    enum class next { nothing, run, last_run, wait };

    /// As the last run begins, the task is there no more.
    [[nodiscard]] next begin(task& t)
    {
      const std::lock_guard lock(mutex_);
      if (!t.is_live()) return next::nothing;
      if (!t.begin()) return next::wait;
      if (!t.count_run()) return next::run;
      static_cast<void>(take(tasks_.find(t.key)));
      return next::last_run;
    }

    /// Whether the task runs again.
    [[nodiscard]] bool end(task& t)
    {
      const std::lock_guard lock(mutex_);
      t.end();
      return t.is_live();
    }

    /// Whether the task was there.
    bool remove(task& t)
    {
      const std::lock_guard lock(mutex_);
      if (!t.is_live()) return false;
      static_cast<void>(take(tasks_.find(t.key)));
      return true;
    }

    bool cancel(const Key& key)
    {
      task_ptr t;
      {
        const std::lock_guard lock(mutex_);
        const auto found = tasks_.find(key);
        if (found != tasks_.end()) t = take(found);
      }
      if (!t) return false;
      t->cancel();
      return true;
    }

    bool reschedule(const Key& key, duration delay)
    {
      const std::lock_guard lock(mutex_);
      const auto found = tasks_.find(key);
      if (found == tasks_.end()) return false;
      return (*found)->move(delay);
    }

    [[nodiscard]] std::optional<time_point> expiry(const Key& key) const
    {
      const std::lock_guard lock(mutex_);
      const auto found = tasks_.find(key);
      if (found == tasks_.end()) return std::nullopt;
      return (*found)->next_turn();
    }

    void clear() noexcept
    {
      task_set all;
      {
        const std::lock_guard lock(mutex_);
        all.swap(tasks_);
        for (const auto& each : all) each->kill();
      }
      for (const auto& each : all) each->cancel();
    }

    [[nodiscard]] bool contains(const Key& key) const
    {
      const std::lock_guard lock(mutex_);
      return tasks_.find(key) != tasks_.end();
    }

    [[nodiscard]] std::size_t size() const
    {
      const std::lock_guard lock(mutex_);
      return tasks_.size();
    }

  private:
    using task_set = detail::hash_set<task_ptr, hash_key, equal_keys>;

    [[nodiscard]] task_ptr take(typename task_set::iterator it)
    {
      task_ptr t = *it;
      t->kill();
      tasks_.erase(it);
      return t;
    }

    const detail::intrusive_ptr<detail::wheel_core> core_;
    const detail::timer_executor<executor_type> executor_;
    mutable std::mutex mutex_;
    task_set tasks_;
  };

  static bool add(const task_ptr& t)
  {
    if (!t->map->insert(t)) return false;
    start(t);
    return true;
  }

  static void start(const task_ptr& t)
  {
    using initiation =
      detail::initiate_wait<detail::lazy_wait_op, detail::lazy_state, executor_type>;
    try {
      initiation{t.get(), &t->map->executor()}([t](error_code ec) { turn(t, ec); });
    } catch (...) {
      t->map->remove(*t);
      throw;
    }
    // Who killed it just now may not have found this wait.
    if (!t->is_live()) t->cancel();
  }

  /// Runs the task, whose time has come, and sees to its next run.
  static void turn(const task_ptr& t, error_code ec)
  {
    task_map& tasks = *t->map;
    if (ec) {
      if (tasks.remove(*t) && ec != asio::error::operation_aborted)
        throw system_error(ec, "keyed_scheduler");
      return;
    }
    switch (tasks.begin(*t)) {
      case task_map::next::nothing: return;
      case task_map::next::wait: return start(t);
      case task_map::next::last_run: return t->run();
      case task_map::next::run: break;
    }
    try {
      t->run();
    } catch (...) {
      if (tasks.end(*t)) start(t);
      throw;
    }
    if (tasks.end(*t)) start(t);
  }

  const wheel_place<> place_;
  const map_ptr tasks_;
};

}  // namespace asio_wheel
