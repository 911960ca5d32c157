// L2 engine: a gate that is open while a context takes functions from other threads, and the wait
// of a handler of such a context.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// Belongs to a context, and closes when the context is destroyed. Counted.
///
/// A handler may be of another context than the wheel on which it waits, or on which the deadline
/// of its operation is. When the time comes, a thread of the wheel posts to the handler's executor.
/// The handler's context may be destroyed at the same moment, and its executor must not be used
/// from then on. So the thread posts only inside the gate, and the destruction of a context waits
/// for the other threads inside. Nobody else waits for them.
///
/// The gate also owns what must go with its context at the latest.
class context_gate;

ASIO_WHEEL_EXPORT void intrusive_ptr_add_ref(const context_gate* g) noexcept;
ASIO_WHEEL_EXPORT void intrusive_ptr_release(const context_gate* g) noexcept;

/// The gate of a context. Throws std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT intrusive_ptr<context_gate> gate_of(asio::execution_context& c);

/// The context of an executor if it is not `home`; null if it is, or if the executor hides it.
template <class Executor>
[[nodiscard, gnu::always_inline]] inline asio::execution_context* context_elsewhere(
  const Executor& ex, const asio::execution_context& home)
{
  if constexpr (erased_executor<Executor>)
    if (!ex) return nullptr;
  if constexpr (!tracks_work<Executor>) {
    return nullptr;
  } else if constexpr (hides_context<Executor>) {
    try {
      return context_elsewhere(innermost_executor(ex), home);
    } catch (const std::logic_error&) {
      return nullptr;
    }
  } else {
    asio::execution_context& c = context_of(ex);
    return &c != &home ? &c : nullptr;
  }
}

/// Keeps a context alive, if it is true. What runs meanwhile may destroy the context itself.
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
  friend class context_gate;

  // Out of line: inlined, GCC 12 takes it for a dangling pointer.
  [[nodiscard, gnu::noinline]] bool enter() noexcept;
  [[gnu::noinline]] void leave() noexcept;

  context_gate* const gate_;       ///< counted, if the context is kept
  kept_context* outer_ = nullptr;  ///< around it in this thread
  const bool is_kept_;
};

/// Work on a context, or a handler. A gate owns it, so that it goes with the context at the latest.
struct ASIO_WHEEL_EXPORT gated_work {
  struct deleter {
    void operator()(gated_work* w) const noexcept { w->destroy(); }
  };
  using ptr = std::unique_ptr<gated_work, deleter>;
  using list = std::list<ptr>;

  virtual void destroy() noexcept = 0;

  list::iterator place;

protected:
  ~gated_work() = default;
};

/// Leaves work to a gate. Throws std::bad_alloc.
ASIO_WHEEL_EXPORT void leave_work(context_gate& g, gated_work::ptr w);

/// Destroys work, unless its context did.
ASIO_WHEEL_EXPORT void finish_work(context_gate& g, gated_work& w) noexcept;

/// Takes work back. Returns false if its context has destroyed it.
[[nodiscard]] ASIO_WHEEL_EXPORT bool take_work(context_gate& g, gated_work& w) noexcept;

/// Outstanding work on an executor, as asio::executor_work_guard. With a gate, the executor's
/// context may go first, in another thread. Without memory for that, nothing is outstanding.
template <class Executor>
class work_of_context {
public:
  [[gnu::noinline]] work_of_context(const Executor& ex, context_gate* g) : gate_(g)
  {
    if (!g) {
      here_.emplace(ex);
      return;
    }
    try {
      gated_work::ptr w(new typed_work(ex));
      gated_work* const left = w.get();
      leave_work(*g, std::move(w));
      there_ = left;
    } catch (const std::bad_alloc&) {
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
    if (there_) finish_work(*gate_, *there_);
  }

private:
  struct typed_work final : gated_work {
    explicit typed_work(const Executor& ex) : work(ex) {}
    void destroy() noexcept override { delete this; }

    executor_work<Executor> work;
  };

  intrusive_ptr<context_gate> gate_;  ///< null: the work is here
  gated_work* there_ = nullptr;
  std::optional<executor_work<Executor>> here_;
};

/// A wait_handler whose handler's context may go first, in another thread. This destroys the
/// handler, as it destroys all others of that context. The wait stays in the wheel until it ends,
/// and then calls nothing.
template <class Handler, class Executor, class Op>
class gated_wait final : public std::conditional_t<has_slot<Handler>, linked<Op>, Op> {
  using base = std::conditional_t<has_slot<Handler>, linked<Op>, Op>;

public:
  using allocator_type = asio::associated_allocator_t<Handler>;

  /// As wait_handler::launch().
  template <class Start>
  [[gnu::noinline, gnu::cold]] static void launch(Handler& handler, const Executor& ex,
                                                  intrusive_ptr<context_gate> gate, Start start)
  {
    [[maybe_unused]] auto slot = asio::get_associated_cancellation_slot(handler, no_slot{});
    auto op = make_op<gated_wait>(std::move(gate), handler, ex);
    if constexpr (has_slot<Handler>) {
      if (slot.is_connected()) op->set_link(slot.template emplace<cancel_link>());
    }
    start(*op);
    static_cast<void>(op.release());
  }

  /// For launch().
  gated_wait(intrusive_ptr<context_gate> gate, Handler& handler, const Executor& ex)
    : base(&gated_wait::do_ask, {.foreign = true, .large = sizeof(gated_wait) > op_line}),
      gate_(std::move(gate)),
      there_(make_op<gated_handler>(handler, ex).release())
  {
    gated_work::ptr w(there_);
    leave_work(*gate_, std::move(w));
  }

  ~gated_wait()
  {
    if (there_) finish_work(*gate_, *there_);
  }

  /// Requires a kept_context.
  [[nodiscard]] allocator_type get_allocator() const noexcept
  {
    return asio::get_associated_allocator(there_->handler);
  }

  void destroy() noexcept { op_deleter<gated_wait, intrusive_ptr<context_gate>>{}(this); }

private:
  /// The handler, which the gate owns.
  struct gated_handler final : gated_work {
    gated_handler(Handler& h, const Executor& ex) : handler(std::move(h)), work(ex) {}

    void destroy() noexcept override { [[maybe_unused]] const Handler h = take(); }
    [[nodiscard]] Handler take() { return take_handler(this, handler); }

    Handler handler;
    executor_work<Executor> work;
  };

  [[gnu::cold]] static void do_ask(wait_op& base, shard& at, wait_request request,
                                   time_point taken_up)
  {
    auto& self = static_cast<gated_wait&>(base);
    if (request == wait_request::send()) return self.send(at, taken_up);
    if (request.is_call_or_send()) return self.call(to_error(request.outcome()));
    if (request == wait_request::describe()) return describe_handler<Handler>(at);
    self.destroy();
  }

  /// Sends the wait to the handler's executor, unless the handler is gone.
  [[gnu::cold]] void send(shard& at, time_point taken_up)
  {
    const intrusive_ptr<wheel_core> c(&core_of(at));
    const kept_context there(gate_.get());
    const auto dispatch = [&](const submission& attempt) {
      const Executor ex = there_->work.get_executor();
      asio::dispatch(ex, posted_wait(*this, at, taken_up, attempt));
    };
    finish_sending(*this, at, there ? submit(this, dispatch) : submission_result::dropped);
  }

  /// Runs on the handler's executor.
  [[gnu::cold]] void call(error_code ec)
  {
    gated_handler* const h = std::exchange(there_, nullptr);
    if (!take_work(*gate_, *h)) return destroy();
    if constexpr (requires(Handler & handler, Op & op) { handler.take_result(op); })
      h->handler.take_result(*this);
    destroy();
    [[maybe_unused]] const executor_work<Executor> w(std::move(h->work));
    h->take()(ec);
  }

  const intrusive_ptr<context_gate> gate_;
  gated_handler* there_;  ///< gone with the context, or null
};

}  // namespace asio_wheel::detail
