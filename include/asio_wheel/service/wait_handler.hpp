// L2 service: a wait with its handler, from the initiation to the call.
#pragma once

#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/op_memory.hpp>
#include <asio_wheel/service/wait_op.hpp>
#include <asio_wheel/service/wheel_errc.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// The cancellation slot of a handler that has none.
struct no_slot {};

template <class Handler>
inline constexpr bool has_slot =
  !std::is_same_v<asio::associated_cancellation_slot_t<Handler, no_slot>, no_slot>;

/// The executor of a handler that has none of its own, or the wheel's: completions already run
/// where it wants to be called.
class no_executor {
public:
  template <class Function>
  void execute(Function&& f) const
  {
    std::forward<Function>(f)();
  }

  friend bool operator==(no_executor, no_executor) noexcept { return true; }
  friend bool operator!=(no_executor, no_executor) noexcept { return false; }
};

[[nodiscard]] inline error_code to_error(wait_outcome outcome) noexcept
{
  switch (outcome) {
    case wait_outcome::cancelled: return asio::error::operation_aborted;
    case wait_outcome::timed_out: return asio::error::timed_out;
    case wait_outcome::rejected: return wheel_errc::too_many_pending;
    case wait_outcome::expired:
    case wait_outcome::destroyed: break;
  }
  return {};
}

/// The allocator for a wait: the handler's, but for the standard one, which ours stands in for.
template <class Allocator, class T>
struct op_allocator_for {
  using type = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
};
template <class U, class T>
struct op_allocator_for<std::allocator<U>, T> {
  struct type : op_allocator<T> {
    explicit type(const std::allocator<U>&) noexcept {}
  };
};

/// `Op`, which is wait_op or timer_wait_op, with a handler. Keeps work outstanding on `Executor`,
/// the handler's, until the call is made there.
template <class Handler, class Executor, class Op>
class wait_handler final : public std::conditional_t<has_slot<Handler>, linked<Op>, unlinked<Op>> {
  using base = std::conditional_t<has_slot<Handler>, linked<Op>, unlinked<Op>>;

public:
  /// Moves the handler into a new wait and passes that to `start(Op&)`, which owns it unless it
  /// throws.
  template <class Start>
  static void launch(Handler& handler, const Executor& ex, Start start)
  {
    [[maybe_unused]] auto slot = asio::get_associated_cancellation_slot(handler, no_slot{});
    auto allocator = allocator_of(handler);
    owner memory{allocator, std::allocator_traits<allocator_type>::allocate(allocator, 1)};
    memory.construct(handler, ex);
    if constexpr (has_slot<Handler>) {
      if (slot.is_connected()) memory.op->set_link(slot.template emplace<cancel_link>());
    }
    start(*memory.op);
    memory.release();
  }

private:
  using allocator_type =
    typename op_allocator_for<asio::associated_allocator_t<Handler>, wait_handler>::type;

  /// Memory for a wait, and from construct() on the wait in it.
  struct owner {
    allocator_type& allocator;
    wait_handler* memory;
    wait_handler* op = nullptr;

    template <class... Args>
    void construct(Args&&... args)
    {
      op = ::new (static_cast<void*>(memory)) wait_handler(std::forward<Args>(args)...);
    }
    void release() noexcept { memory = op = nullptr; }
    void free() noexcept
    {
      if (op) op->~wait_handler();
      if (memory) std::allocator_traits<allocator_type>::deallocate(allocator, memory, 1);
      release();
    }
    ~owner() { free(); }
  };

  /// What is passed to the handler's executor.
  class call {
  public:
    using allocator_type = asio::associated_allocator_t<Handler>;

    call(Handler&& handler, const error_code& ec) : handler_(std::move(handler)), ec_(ec) {}
    [[nodiscard]] allocator_type get_allocator() const noexcept
    {
      return asio::get_associated_allocator(handler_);
    }
    void operator()() { std::move(handler_)(std::as_const(ec_)); }

  private:
    Handler handler_;
    error_code ec_;
  };

  struct no_work {
    explicit no_work(no_executor) noexcept {}
  };
  using work = std::conditional_t<std::is_same_v<Executor, no_executor>, no_work,
                                  asio::executor_work_guard<Executor>>;

  wait_handler(Handler& handler, const Executor& ex)
    : base(&wait_handler::do_complete),
      handler_(std::move(handler)),
      work_(ex)
  {}

  static allocator_type allocator_of(const Handler& handler) noexcept
  {
    return allocator_type(asio::get_associated_allocator(handler));
  }

  static void do_complete(wait_op& base, wait_outcome outcome)
  {
    auto& self = static_cast<wait_handler&>(base);
    auto allocator = allocator_of(self.handler_);
    owner memory{allocator, &self, &self};

    // The memory goes before the handler is called: the call may well start the next wait in it.
    // Nor may it outlive the handler, which may own what the allocator draws on.
    Handler handler(std::move(self.handler_));
    work w(std::move(self.work_));
    memory.free();

    if (outcome == wait_outcome::destroyed) return;
    const error_code ec = to_error(outcome);
    if constexpr (std::is_same_v<Executor, no_executor>)
      std::move(handler)(ec);
    else
      asio::dispatch(w.get_executor(), call(std::move(handler), ec));
  }

  Handler handler_;
  [[no_unique_address]] work work_;
};

/// Whether `ex` is `native`, so that a function run by one need not be passed to the other.
template <class Executor>
[[nodiscard]] bool is_native(const Executor& ex, const asio::any_io_executor& native) noexcept
{
  if constexpr (std::is_same_v<Executor, asio::any_io_executor>) {
    return ex == native;
  } else {
    const Executor* target = native.target<Executor>();
    return target && *target == ex;
  }
}

/// Starts a wait whose handler runs through its associated executor, or through `fallback`.
/// `native` is the wheel's own, and says nothing has to be dispatched to get there.
template <class Op, class Handler, class Fallback, class Start>
void launch_wait(Handler& handler, const asio::any_io_executor& native, const Fallback& fallback,
                 bool fallback_is_native, Start start)
{
  using associated = asio::associated_executor_t<Handler, no_executor>;
  if constexpr (std::is_same_v<associated, no_executor>) {
    if (fallback_is_native)
      wait_handler<Handler, no_executor, Op>::launch(handler, no_executor{}, start);
    else
      wait_handler<Handler, Fallback, Op>::launch(handler, fallback, start);
  } else {
    const associated ex = asio::get_associated_executor(handler, no_executor{});
    if (is_native(ex, native))
      wait_handler<Handler, no_executor, Op>::launch(handler, no_executor{}, start);
    else
      wait_handler<Handler, associated, Op>::launch(handler, ex, start);
  }
}

}  // namespace asio_wheel
