// L3 roof: functions that run later, or again and again, each under a key of its own.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/ground/intrusive_ptr.hpp>
#include <asio_wheel/detail/roof/scheduled_task.hpp>
#include <asio_wheel/detail/roof/task_table.hpp>
#include <asio_wheel/detail/roof/tick_after.hpp>
#include <asio_wheel/detail/roof/wait_room.hpp>
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
/// and destruction: several threads may call `Hash` at once. A lock is held while keys are
/// compared, so `Equal` must not use the scheduler; it is not while a key is hashed, nor while a
/// function or a key is copied, moved, called or destroyed.
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
    const detail::key_hash hash = tasks_->look_up(key);
    return add(hash, make<task_once<F>>(std::move(key), delay, std::move(f)));
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
    const detail::key_hash hash = tasks_->look_up(key);
    return add(hash, make<repeated_task<F>>(std::move(key), period, std::move(f), times));
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

    /// Where its waits are made; null: where others are.
    [[nodiscard]] virtual detail::wait_room* room() noexcept { return nullptr; }

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
  struct repeated_task : task_once<F> {
    repeated_task(const map_ptr& m, Key&& k, duration period, F&& f, std::size_t times)
      : task_once<F>(m, std::move(k), period, std::move(f)),
        to_come{period, times}
    {}
    detail::task_turns* turns() noexcept override { return &to_come; }

    detail::task_turns to_come;
  };

  /// A task with its wait: one piece of memory, which comes at once when the task is moved.
  template <class Task>
  struct with_room final : Task {
    using Task::Task;
    [[nodiscard]] detail::wait_room* room() noexcept override { return &place; }

    detail::wait_room place;
  };

  /// The handler of a task's wait.
  struct turn_handler {
    using allocator_type = detail::room_allocator<void>;

    [[nodiscard]] allocator_type get_allocator() const noexcept
    {
      return allocator_type(owner->room());
    }
    void operator()(error_code ec) const { turn(owner, ec); }

    task_ptr owner;
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

    /// The key's hash. Asks for the memory that a search for it needs, ahead of the lock.
    [[nodiscard]] detail::key_hash look_up(const Key& key) const
    {
      const detail::key_hash hash = detail::key_hash_of(hash_(key));
      tasks_.prefetch(hash);
      return hash;
    }

    [[nodiscard]] bool insert(detail::key_hash hash, const task_ptr& t)
    {
      const std::lock_guard lock(mutex_);
      if (find(hash, t->key)) return false;
      tasks_.make_room();
      tasks_.insert(hash, *task_ptr(t).release());
      return true;
    }

    /// What comes of a wait that is over.
    enum class next { nothing, run, last_run, wait };

    /// As the last run begins, the task is there no more.
    [[nodiscard]] next begin(task& t)
    {
      const detail::key_hash hash = look_up(t.key);
      const std::lock_guard lock(mutex_);
      if (!t.is_live()) return next::nothing;
      if (!t.begin()) return next::wait;
      if (!t.count_run()) return next::run;
      static_cast<void>(take(hash, t));
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
      if (!t.is_live()) return false;
      const detail::key_hash hash = look_up(t.key);
      const std::lock_guard lock(mutex_);
      if (!t.is_live()) return false;
      static_cast<void>(take(hash, t));
      return true;
    }

    bool cancel(const Key& key)
    {
      const detail::key_hash hash = look_up(key);
      task_ptr t;
      {
        const std::lock_guard lock(mutex_);
        if (task* const found = find(hash, key)) t = take(hash, *found);
      }
      if (!t) return false;
      t->cancel();
      return true;
    }

    bool reschedule(const Key& key, duration delay)
    {
      const detail::key_hash hash = look_up(key);
      const time_point to = core_->clock.deadline_after(delay);
      const std::lock_guard lock(mutex_);
      task* const found = find(hash, key);
      return found && found->move(delay, to);
    }

    [[nodiscard]] std::optional<time_point> expiry(const Key& key) const
    {
      const detail::key_hash hash = look_up(key);
      const std::lock_guard lock(mutex_);
      task* const found = find(hash, key);
      return found ? std::optional(found->next_turn()) : std::nullopt;
    }

    void clear() noexcept
    {
      const detail::task_table all = [this] {
        const std::lock_guard lock(mutex_);
        tasks_.for_each([](detail::scheduled_task& t) { t.kill(); });
        return std::move(tasks_);
      }();
      all.for_each([](detail::scheduled_task& t) {
        const task_ptr owner(static_cast<task*>(&t), false);
        owner->cancel();
      });
    }

    [[nodiscard]] bool contains(const Key& key) const
    {
      const detail::key_hash hash = look_up(key);
      const std::lock_guard lock(mutex_);
      return find(hash, key) != nullptr;
    }

    [[nodiscard]] std::size_t size() const
    {
      const std::lock_guard lock(mutex_);
      return tasks_.size();
    }

  private:
    [[nodiscard]] task* find(detail::key_hash hash, const Key& key) const
    {
      return static_cast<task*>(tasks_.find(hash, [&](const detail::scheduled_task& t) {
        return equal_(key, static_cast<const task&>(t).key);
      }));
    }

    [[nodiscard]] task_ptr take(detail::key_hash hash, task& t) noexcept
    {
      t.kill();
      tasks_.erase(hash, t);
      return task_ptr(&t, false);
    }

    const detail::intrusive_ptr<detail::wheel_core> core_;
    const detail::timer_executor<executor_type> executor_;
    mutable std::mutex mutex_;
    detail::task_table tasks_;
    [[no_unique_address]] Hash hash_;
    [[no_unique_address]] Equal equal_;
  };

  /// Makes a task. A wait through another executor than the wheel's is larger than the room.
  template <class Task, class... Args>
  [[nodiscard]] task_ptr make(Args&&... args) const
  {
    if (tasks_->executor().is_native_to_wheel())
      return new with_room<Task>(tasks_, std::forward<Args>(args)...);
    return new Task(tasks_, std::forward<Args>(args)...);
  }

  static bool add(detail::key_hash hash, const task_ptr& t)
  {
    if (!t->map->insert(hash, t)) return false;
    start(t);
    return true;
  }

  static void start(const task_ptr& t)
  {
    using initiation =
      detail::initiate_wait<detail::lazy_wait_op, detail::lazy_state, executor_type>;
    try {
      initiation{t.get(), &t->map->executor()}(turn_handler{t});
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
