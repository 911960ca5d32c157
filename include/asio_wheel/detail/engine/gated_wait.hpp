// L2 engine: a wait whose handler is of another context than its wheel.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/context_gate.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

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
