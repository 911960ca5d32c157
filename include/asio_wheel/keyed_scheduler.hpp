// L3 roof: functions that run later, or again and again, each under a key of its own.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/roof/scheduled_task.hpp>
#include <asio_wheel/detail/roof/tick_after.hpp>
#include <asio_wheel/wheel_place.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace asio_wheel {

/// As `times` of keyed_scheduler::run_every: until it is cancelled.
inline constexpr std::size_t forever = detail::unlimited_times;

/// Runs functions later, once or repeatedly, each under a key by which it can be cancelled.
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

  /// A scheduler without tasks.
  ///
  /// @param place  the wheel, or an executor or context whose wheel it is to be (see use_wheel).
  /// Exceptions: std::bad_alloc, and what use_wheel() throws.
  explicit keyed_scheduler(wheel_place<> place)
    : place_(place),
      tasks_(std::make_shared<task_map>())
  {}
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
  ///   system_error leaves by `run()`.
  /// Exceptions: std::bad_alloc, and what the key, `f` and posting to the context throw; nothing is
  ///   scheduled then.
  template <detail::task_function F>
  bool run_after(Key key, duration delay, F f)
  {
    return add<F>(std::move(key), std::move(f), delay, duration::max(), 1);
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
    return add<F>(std::move(key), std::move(f), period, period, times);
  }

  /// Cancels the task under `key`. Returns whether there was one: a run was still to come, and will
  /// not begin any more. One that has begun is not interrupted.
  bool cancel(const Key& key) { return tasks_->cancel(key); }

  /// Whether the key is live.
  [[nodiscard]] bool contains(const Key& key) const { return tasks_->contains(key); }

  /// How many keys are live.
  [[nodiscard]] std::size_t size() const { return tasks_->size(); }

private:
  struct task : detail::scheduled_task {
    using detail::scheduled_task::scheduled_task;

    const Key* key = nullptr;  ///< in the map; valid while the task is live
  };
  using task_ptr = std::shared_ptr<task>;

  template <class F>
  struct task_of final : task {
    template <class... Args>
    explicit task_of(F&& f, Args&&... args) : task(std::forward<Args>(args)...),
                                              f_(std::move(f))
    {}
    void run() override { std::invoke(f_); }

    F f_;
  };

  /// The live tasks. Keys and tasks go in and out as nodes of the map: those are made before the
  /// lock is taken, and destroyed after it is released.
  class task_map {
  public:
    [[nodiscard]] bool insert(Key key, const task_ptr& t)
    {
      map one;
      t->key = &one.emplace(std::move(key), t).first->first;
      auto node = one.extract(one.begin());
      const std::lock_guard lock(mutex_);
      auto result = tasks_.insert(std::move(node));
      node = std::move(result.node);
      return result.inserted;
    }

    /// Begins a run, unless the task was cancelled: whether it does. As the last run begins, the
    /// task is there no more.
    [[nodiscard]] bool begin(task& t, bool& is_last)
    {
      node_type node;
      const std::lock_guard lock(mutex_);
      if (!t.is_live()) return false;
      is_last = t.count_run();
      if (is_last) node = take(tasks_.find(*t.key));
      return true;
    }

    /// Whether the task was there.
    bool remove(task& t)
    {
      node_type node;
      const std::lock_guard lock(mutex_);
      if (t.is_live()) node = take(tasks_.find(*t.key));
      return !node.empty();
    }

    bool cancel(const Key& key)
    {
      node_type node;
      {
        const std::lock_guard lock(mutex_);
        const auto found = tasks_.find(key);
        if (found != tasks_.end()) node = take(found);
      }
      if (node.empty()) return false;
      node.mapped()->end_wait();
      return true;
    }

    void clear() noexcept
    {
      map all;
      {
        const std::lock_guard lock(mutex_);
        all.swap(tasks_);
        for (const auto& each : all) each.second->kill();
      }
      for (const auto& each : all) each.second->end_wait();
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
    using map = std::unordered_map<Key, task_ptr, Hash, Equal>;
    using node_type = typename map::node_type;

    node_type take(typename map::iterator it)
    {
      it->second->kill();
      return tasks_.extract(it);
    }

    mutable std::mutex mutex_;
    map tasks_;
  };

  template <class F>
  bool add(Key key, F f, duration delay, duration period, std::size_t times)
  {
    const auto t = std::make_shared<task_of<F>>(std::move(f), place_, delay, period, times);
    if (!tasks_->insert(std::move(key), t)) return false;
    start(tasks_, t);
    return true;
  }

  static void start(const std::shared_ptr<task_map>& tasks, const task_ptr& t)
  {
    try {
      t->wait([tasks, t](error_code ec) { turn(tasks, t, ec); });
    } catch (...) {
      tasks->remove(*t);
      throw;
    }
  }

  /// Runs the task, whose time has come, and sees to its next run.
  static void turn(const std::shared_ptr<task_map>& tasks, const task_ptr& t, error_code ec)
  {
    if (ec) {
      if (tasks->remove(*t) && ec != asio::error::operation_aborted)
        throw system_error(ec, "keyed_scheduler");
      return;
    }
    bool is_last = false;
    if (!tasks->begin(*t, is_last)) return;
    if (is_last) return t->run();
    try {
      t->run();
    } catch (...) {
      start_again(tasks, t);
      throw;
    }
    start_again(tasks, t);
  }

  static void start_again(const std::shared_ptr<task_map>& tasks, const task_ptr& t)
  {
    if (!t->is_live()) return;
    t->set_next_turn();
    start(tasks, t);
  }

  const wheel_place<> place_;
  const std::shared_ptr<task_map> tasks_;
};

}  // namespace asio_wheel
