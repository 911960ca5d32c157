// L2 engine: a gate that is open while a context takes functions from other threads.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/executors.hpp>

#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace asio_wheel::detail {

/// Belongs to a context, and closes when the context is destroyed. Counted.
///
/// The deadline of an operation may be on the wheel of another context than the operation and its
/// handler. When the deadline comes, a thread of the wheel posts to the handler's executor. The
/// handler's context may be destroyed at the same moment. This ends the operation, but an executor
/// must not be used from then on. So the thread posts only inside the gate, and the destruction of
/// a context waits for the threads inside. Nobody else waits for them.
class context_gate;

ASIO_WHEEL_EXPORT void intrusive_ptr_add_ref(const context_gate* g) noexcept;
ASIO_WHEEL_EXPORT void intrusive_ptr_release(const context_gate* g) noexcept;

/// The gate of a context. Throws std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT intrusive_ptr<context_gate> gate_of(asio::execution_context& c);

/// Keeps a context alive, if it is true.
class ASIO_WHEEL_EXPORT kept_context {
public:
  /// @param g  null: there is nothing to keep
  explicit kept_context(context_gate* g) noexcept : gate_(g), is_kept_(!g || enter()) {}
  kept_context(const kept_context&) = delete;
  kept_context& operator=(const kept_context&) = delete;
  ~kept_context()
  {
    if (gate_ && is_kept_) leave();
  }

  explicit operator bool() const noexcept { return is_kept_; }

private:
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;

  context_gate* const gate_;
  const bool is_kept_;
};

/// Work on a context. A gate owns it, so that it goes with the context at the latest.
struct ASIO_WHEEL_EXPORT gated_work {
  using list = std::list<std::unique_ptr<gated_work>>;

  virtual ~gated_work() = default;

  list::iterator place;
};

/// Leaves work to a gate. Throws std::bad_alloc.
ASIO_WHEEL_EXPORT void leave_work(context_gate& g, std::unique_ptr<gated_work> w);

/// Destroys work. Requires a kept_context.
ASIO_WHEEL_EXPORT void finish_work(context_gate& g, gated_work& w) noexcept;

/// Outstanding work on an executor, as asio::executor_work_guard. With a gate, the executor's
/// context may go first, in another thread.
template <class Executor>
class work_of_context {
public:
  work_of_context(const Executor& ex, context_gate* g) : gate_(g)
  {
    if (!g) {
      here_.emplace(ex);
    } else {
      auto w = std::make_unique<typed_work>(ex);
      there_ = w.get();
      leave_work(*g, std::move(w));
    }
  }
  work_of_context(work_of_context&& other) noexcept
    : gate_(std::move(other.gate_)),
      there_(std::exchange(other.there_, nullptr)),
      here_(std::move(other.here_))
  {}
  work_of_context& operator=(work_of_context&&) = delete;
  ~work_of_context()
  {
    if (!there_) return;
    if (const kept_context kept(gate_.get()); kept) finish_work(*gate_, *there_);
  }

private:
  struct typed_work final : gated_work {
    explicit typed_work(const Executor& ex) : work(ex) {}
    executor_work<Executor> work;
  };

  intrusive_ptr<context_gate> gate_;  ///< null: the work is here
  gated_work* there_ = nullptr;
  std::optional<executor_work<Executor>> here_;
};

}  // namespace asio_wheel::detail
