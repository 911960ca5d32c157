// L2 engine: how the wheel's own functions get through its context's executor.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/wheel/wheel_entry.hpp>

#include "../base/locks.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <new>
#include <shared_mutex>
#include <type_traits>
#include <utility>
#include <variant>

namespace asio_wheel::detail {

/// Storage for a few functions on their way through an executor. More functions, or larger ones,
/// come from operator new. No function in it may outlive it.
class task_memory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t size, std::size_t) override
  {
    for (block& b : blocks_) {
      if (size <= sizeof(b.bytes) && !b.taken.exchange(true, std::memory_order_acquire))
        return b.bytes;
    }
    return ::operator new(size);
  }

  void do_deallocate(void* p, std::size_t, std::size_t) override
  {
    for (block& b : blocks_) {
      if (p == b.bytes) return b.taken.store(false, std::memory_order_release);
    }
    ::operator delete(p);
  }

  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override
  {
    return this == &other;
  }

  struct block {
    std::atomic<bool> taken{false};
    alignas(std::max_align_t) std::byte bytes[256];
  };
  block blocks_[6];
};

using task_allocator = std::pmr::polymorphic_allocator<std::byte>;

/// A function of the wheel on its way through the context's executor. All are of this type, since
/// Asio makes a few kilobytes of code for each type of function.
class posted_call {
public:
  using allocator_type = task_allocator;

  /// Requires that `memory` outlives it.
  template <class Function>
  posted_call(task_memory& memory, const Function& f) noexcept
    : memory_(&memory),
      call_([](const void* p) { (*static_cast<const Function*>(p))(); })
  {
    static_assert(std::is_trivially_copyable_v<Function>);
    static_assert(sizeof(Function) <= sizeof(function_));
    static_assert(alignof(Function) <= alignof(void*));
    ::new (static_cast<void*>(function_)) Function(f);
  }

  [[nodiscard]] allocator_type get_allocator() const noexcept { return memory_; }
  void operator()() const { call_(function_); }

private:
  task_memory* memory_;
  void (*call_)(const void* function);
  alignas(void*) std::byte function_[2 * sizeof(void*)];
};

/// The context's executor, with its type if it is Asio's own. Contexts of these types complete
/// their timers themselves and count them as work. For any other context, Asio completes timers in
/// its own thread. Posting through the type uses the function's allocator; posting through
/// any_io_executor does not.
class native_executor {
public:
  explicit native_executor(const asio::any_io_executor& ex) : native_executor(typed(ex)) {}

  const bool counts_timers;  ///< a timer's wait is work of the context

  /// Throws what the executor throws.
  template <class Function>
  void post(Function f) const
  {
    if (const auto* io = std::get_if<io_executor>(&typed_))
      asio::post(*io, std::move(f));
    else if (const auto* pool = std::get_if<pool_executor>(&typed_))
      asio::post(*pool, std::move(f));
    else
      asio::require(std::get<0>(typed_), asio::execution::blocking.never).execute(std::move(f));
  }

  /// Posts the wheel's own function. Returns false if the executor has refused it twice: one that
  /// refuses every other function might refuse this function for ever, if others alternate with it.
  [[nodiscard]] bool post_twice(const posted_call& f) const noexcept
  {
    return try_post(f) || try_post(f);
  }

  /// Returns true if the context runs the calling thread; false also if the executor cannot say.
  [[nodiscard]] bool running_in_this_thread() const noexcept
  {
    if (const auto* io = std::get_if<io_executor>(&typed_)) return io->running_in_this_thread();
    const auto* pool = std::get_if<pool_executor>(&typed_);
    return pool && pool->running_in_this_thread();
  }

  /// Work for a context that does not count its timers.
  [[nodiscard]] asio::any_io_executor work() const noexcept
  {
    return asio::prefer(std::get<0>(typed_), asio::execution::outstanding_work.tracked);
  }

private:
  using io_executor = asio::io_context::executor_type;
  using pool_executor = asio::thread_pool::executor_type;
  using variant = std::variant<asio::any_io_executor, io_executor, pool_executor>;

  explicit native_executor(variant ex) : counts_timers(ex.index() != 0), typed_(std::move(ex)) {}

  [[nodiscard]] bool try_post(const posted_call& f) const noexcept
  {
    try {
      post(f);
      return true;
    } catch (...) {
      return false;
    }
  }

  static variant typed(const asio::any_io_executor& ex)
  {
    if (const auto* e = ex.target<io_executor>()) return *e;
#if !defined(BOOST_ASIO_HAS_IOCP) && !defined(ASIO_HAS_IOCP)
    if (const auto* e = ex.target<pool_executor>()) return *e;
#endif
    return ex;
  }

  variant typed_;
};

/// The strand's function on its way through the context. There is at most one, since the strand
/// asks for at most one.
class strand_run {
public:
  explicit strand_run(task_memory& memory) noexcept : memory_(memory) {}
  strand_run(const strand_run&) = delete;
  strand_run& operator=(const strand_run&) = delete;
  ~strand_run() { drop(); }

  /// Destroys the function, if there is one.
  void drop() noexcept
  {
    if (run_) run_(*this, false);
  }

  /// Requires that it is empty.
  template <class Function>
  void put(Function f)
  {
    void* const p = memory_.allocate(sizeof(Function), alignof(Function));
    function_ = ::new (p) Function(std::move(f));
    run_ = [](strand_run& self, bool call) {
      auto* const kept = static_cast<Function*>(self.function_);
      Function taken(std::move(*kept));
      std::destroy_at(kept);
      self.memory_.deallocate(kept, sizeof(Function), alignof(Function));
      self.run_ = nullptr;
      if (call) taken();
    };
  }

  /// Empties it, and calls the function, if there is one.
  void call()
  {
    if (run_) run_(*this, true);
  }

private:
  task_memory& memory_;
  void* function_ = nullptr;
  void (*run_)(strand_run&, bool call) = nullptr;  ///< null if it is empty
};

/// Something with work to do from time to time, as its driver sees it.
class driver_client {
public:
  /// The tick of the next pass, or `at_once`; none if no pass is needed. Called from any thread.
  [[nodiscard]] virtual maybe_tick next_tick() noexcept = 0;

  /// Does the work that is due by now. Called on the driver's strand.
  virtual void pass() = 0;

  /// Called behind each pass, when the strand is free again, in the same thread.
  virtual void follow_pass() = 0;

  /// A foreign executor has refused the strand's turn.
  virtual void turn_was_refused() noexcept = 0;

protected:
  ~driver_client() = default;
};

/// What copies of the inner executor share.
struct inner_resources {
  const native_executor& native;
  asio::execution_context& context;
  driver_client& client;  ///< the strand makes its passes
  task_memory& memory;
  strand_run run;

  /// Posts `run`. Returns false if the executor has refused it.
  [[nodiscard]] bool post_run() noexcept
  {
    return native.post_twice(posted_call(memory, [this] {
      run.call();
      client.follow_pass();
    }));
  }
};

/// The inner executor of the strand, as Asio calls it.
///
/// It runs a **turn**: functions of the strand and, when the strand is free again, the delivery of
/// what they found due, in one thread.
///
/// The timer's completion is a turn in place, if the context completes its timers itself. Functions
/// that must not block (`Posts`) go through the context, in memory set aside: a strand that cannot
/// pass on its own function never runs again. So the function is kept, and posted again later if a
/// foreign executor refuses it.
template <bool Posts = false>
class inner_executor {
public:
  explicit inner_executor(inner_resources& resources) noexcept : resources_(&resources) {}

  template <class Function>
  void execute(Function f) const
  {
    if (Posts || !resources_->native.counts_timers) {
      resources_->run.put(std::move(f));
      if (!resources_->post_run()) resources_->client.turn_was_refused();
    } else {
      f();
      resources_->client.follow_pass();
    }
  }

  [[nodiscard]] inner_executor<true> require(asio::execution::blocking_t::never_t) const noexcept
  {
    return inner_executor<true>(*resources_);
  }
  [[nodiscard]] static constexpr asio::execution::blocking_t query(
    asio::execution::blocking_t) noexcept
  {
    if constexpr (Posts)
      return asio::execution::blocking_t::never_t();
    else
      return asio::execution::blocking_t::possibly_t();
  }
  [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept
  {
    return resources_->context;
  }
  template <class T>
  [[nodiscard]] task_allocator query(asio::execution::allocator_t<T>) const noexcept
  {
    return &resources_->memory;
  }

  friend bool operator==(const inner_executor&, const inner_executor&) noexcept = default;

private:
  inner_resources* resources_;
};

/// As long as there are waits to take, keeps a function that takes them on its way through the
/// context's executor, or running and not inside a handler.
///
/// The function takes one wait at a time. Before it calls the handler, it posts another function if
/// there are more waits and no function is on its way. So if the handler blocks or throws, the next
/// idle thread of the context goes on with the next waits.
class delivery {
public:
  /// How many handlers one function calls, so that other work of the context gets its turn.
  static constexpr int length = 64;

  /// There are waits to take, in a shard whose lock the caller has. Returns true if the caller must
  /// post(), after it has released all locks.
  [[nodiscard]] bool request() noexcept
  {
    return !posted_.load(std::memory_order_relaxed) && !posted_.exchange(true);
  }

  /// The function has been called, or could not be posted.
  void set_arrived() noexcept { posted_.store(false, std::memory_order_relaxed); }

  /// Returns true if the function is on its way, or is about to be.
  [[nodiscard]] bool is_requested() const noexcept
  {
    return posted_.load(std::memory_order_relaxed);
  }

  /// Posts `f`. Returns false if the executor does not take it: the waits stay, for another
  /// request.
  template <class Function>
  [[nodiscard]] bool post(const native_executor& native, const Function& f) noexcept
  {
    const std::shared_lock inside(gate_, std::try_to_lock);
    return !inside || native.post_twice(posted_call(memory_, f));
  }

  /// The context is going away: nothing is posted any more.
  void close() noexcept { gate_.close(); }

private:
  std::atomic<bool> posted_{false};
  gate gate_;
  task_memory memory_;
};

}  // namespace asio_wheel::detail
