// L3 roof: an operation with a deadline, from its initiation to the call of its handler.
#pragma once

#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/completion_result.hpp>
#include <asio_wheel/service/deadline_op.hpp>
#include <asio_wheel/service/embedded_signal.hpp>
#include <asio_wheel/service/wait_handler.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// The state of one operation with a deadline: the user's handler, the deadline and what the
/// operation proper listens to, in one allocation.
///
/// `Fallback` is the executor of a handler without one, or no_executor.
template <class Handler, class Fallback, class... Signatures>
class deadline_operation final : public deadline_op {
public:
  using handler_type = Handler;

  /// Takes over the handler. Throws what its allocator and its move throw.
  template <class H>
  static deadline_operation& make(H&& handler, const Fallback& fallback, shard_set& shards,
                                  tick when, asio::cancellation_type_t type, deadline_report report)
  {
    auto allocator = allocator_of(handler);
    memory m{allocator, std::allocator_traits<allocator_type>::allocate(allocator, 1)};
    auto* const op = ::new (static_cast<void*>(m.place))
      deadline_operation(std::forward<H>(handler), fallback, shards, when, terms{type, report});
    m.place = nullptr;
    op->listen();
    return *op;
  }

  [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

  /// To be called once the operation has been initiated, or could not be.
  void initiated(tick when)
  {
    if (!start(when)) finish_elsewhere();
  }

  /// The operation has completed.
  template <class... Args>
  void complete(Args&&... args)
  {
    settlement later;
    if (withdraw(later) && !has_verdict()) {
      Handler h = take_handler();
      std::move(h)(std::forward<Args>(args)...);
    } else {
      complete_late(later, std::forward<Args>(args)...);
    }
  }

  /// The operation was destroyed.
  void abandon() noexcept
  {
    settlement later;
    if (leave(later)) destroy();
  }

private:
  using allocator_type =
    typename op_allocator_for<asio::associated_allocator_t<Handler>, deadline_operation>::type;

  static constexpr bool has_executor =
    !std::is_same_v<asio::associated_executor_t<Handler, no_executor>, no_executor>;
  using fallback_type = std::conditional_t<has_executor, no_executor, Fallback>;
  using executor_type = asio::associated_executor_t<Handler, fallback_type>;
  static constexpr bool runs_anywhere = std::is_same_v<executor_type, no_executor>;

  struct no_work {
    explicit no_work(no_executor) noexcept {}
  };
  using work = std::conditional_t<runs_anywhere, no_work, asio::executor_work_guard<executor_type>>;

  struct memory {
    allocator_type& allocator;
    deadline_operation* place;

    ~memory()
    {
      if (place) std::allocator_traits<allocator_type>::deallocate(allocator, place, 1);
    }
  };

  /// A firing or a delivery on its way through an executor, which may drop it.
  template <bool Fires>
  class errand {
  public:
    errand(deadline_operation& op, wait_outcome outcome) noexcept : op_(&op), outcome_(outcome) {}
    errand(errand&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)),
        outcome_(other.outcome_)
    {}
    errand& operator=(errand&&) = delete;
    ~errand()
    {
      if (!op_) return;
      if constexpr (Fires)
        op_->miss();
      else
        op_->destroy();
    }
    void operator()()
    {
      deadline_operation& op = *std::exchange(op_, nullptr);
      if constexpr (Fires)
        op.fire(outcome_);
      else
        op.deliver();
    }

  private:
    deadline_operation* op_;
    wait_outcome outcome_;
  };
  using firing = errand<true>;
  using delivery = errand<false>;

  /// What passes on a cancellation from the slot of the user's handler.
  class forward : public deadline_link {
  public:
    using deadline_link::deadline_link;

    void operator()(asio::cancellation_type_t type)
    {
      if (deadline_op* const op = hold(type)) {
        const let_go then{static_cast<deadline_operation&>(*op)};
        op->signal().emit(type);
      }
    }
  };

  /// The end of a hold where the handler must not be called from.
  struct let_go {
    deadline_operation& op;

    ~let_go()
    {
      if (op.release()) op.finish_elsewhere();
    }
  };

  template <class H>
  deadline_operation(H&& handler, const Fallback& fallback, shard_set& shards, tick when, terms t)
    : deadline_op(&deadline_operation::wheel_is_done, shards, when, t),
      handler_(std::forward<H>(handler)),
      fallback_(to_fallback(fallback))
  {}

  static allocator_type allocator_of(const Handler& handler) noexcept
  {
    return allocator_type(asio::get_associated_allocator(handler));
  }

  static fallback_type to_fallback(const Fallback& fallback) noexcept
  {
    if constexpr (has_executor)
      return {};
    else
      return fallback;
  }

  [[nodiscard]] executor_type executor() const noexcept
  {
    return asio::get_associated_executor(handler_, fallback_);
  }

  void listen()
  {
    if constexpr (has_slot<Handler>) {
      auto slot = asio::get_associated_cancellation_slot(handler_, no_slot{});
      if (!slot.is_connected()) return;
      try {
        slot.template emplace<forward>(*this);
      } catch (...) {
        destroy();
        throw;
      }
    }
  }

  // The deadline's side.

  static void wheel_is_done(wait_op& base, wait_outcome outcome)
  {
    auto& self = static_cast<deadline_operation&>(base);
    self.hold_shards();
    if (outcome == wait_outcome::destroyed)
      self.miss();
    else if constexpr (runs_anywhere)
      self.fire(outcome);
    else
      asio::dispatch(self.executor(), firing(self, outcome));
  }

  /// Cancels the operation if it still goes on, on the handler's executor.
  void fire(wait_outcome outcome)
  {
    if (begin_firing(outcome)) {
      try {
        signal().emit(type());
      } catch (...) {
        miss();
        throw;
      }
    }
    if (release()) finish();
  }

  /// Ends a firing that cannot be.
  void miss() noexcept { const let_go now{*this}; }

  // The end, for who has the state to himself.

  template <class... Args>
  void complete_late(settlement& later, Args&&... args)
  {
    try {
      result_.store(std::forward<Args>(args)...);
      work_.emplace(executor());
    } catch (...) {
      result_ = {};
      if (leave(later)) destroy();
      throw;
    }
    if (leave(later)) finish();
  }

  void finish()
  {
    if (result_.empty())
      destroy();
    else
      deliver();
  }

  void finish_elsewhere() noexcept
  {
    if (result_.empty()) return destroy();
    delivery d(*this, wait_outcome::expired);
    try {
      if constexpr (runs_anywhere)
        shards().native().post(std::move(d));
      else
        asio::post(executor(), std::move(d));
    } catch (...) {
      // Without memory to be posted in, the result is lost with the operation.
    }
  }

  void deliver()
  {
    result_.replace_abort(verdict());
    [[maybe_unused]] const auto work_until_called = std::move(work_);
    result_.deliver_to([this] { return take_handler(); });
  }

  void destroy() noexcept { [[maybe_unused]] const Handler h = take_handler(); }

  /// Destroys the state and frees its memory, which the call may well need for the next operation.
  /// Nor may it outlive the handler, which may own what the allocator draws on.
  [[nodiscard]] Handler take_handler()
  {
    const auto shards_meanwhile = take_shards();
    auto allocator = allocator_of(handler_);
    const memory m{allocator, this};
    struct end {
      deadline_operation& op;
      ~end() { op.~deadline_operation(); }
    } const e{*this};
    return std::move(handler_);
  }

  Handler handler_;
  [[no_unique_address]] fallback_type fallback_;
  completion_result<Signatures...> result_;  ///< of an operation that others held on to
  std::optional<work> work_;                 ///< for as long as there is a result
};

/// What the operation proper completes: the owner of the state. It has the user's handler's
/// executor and allocator, and a cancellation slot of its own.
template <class Operation>
class deadline_handler {
public:
  using cancellation_slot_type = embedded_slot;

  explicit deadline_handler(Operation& op) noexcept : op_(&op) {}
  /// One that was moved from is asked for its allocator all the same, when an initiation fails. So
  /// it still points to the state, which the initiating function keeps until then.
  deadline_handler(deadline_handler&& other) noexcept
    : op_(other.op_),
      is_owner_(std::exchange(other.is_owner_, false))
  {}
  deadline_handler& operator=(deadline_handler&&) = delete;
  ~deadline_handler()
  {
    if (is_owner_) op_->abandon();
  }

  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept
  {
    return cancellation_slot_type(op_->signal());
  }

  [[nodiscard]] const typename Operation::handler_type& inner() const noexcept
  {
    return op_->handler();
  }

  template <class... Args>
  void operator()(Args&&... args)
  {
    is_owner_ = false;
    op_->complete(std::forward<Args>(args)...);
  }

private:
  Operation* op_;
  bool is_owner_ = true;
};

}  // namespace asio_wheel

template <template <class, class> class Associator, class Operation, class DefaultCandidate>
struct boost::asio::associator<Associator, asio_wheel::deadline_handler<Operation>,
                               DefaultCandidate>
  : Associator<typename Operation::handler_type, DefaultCandidate> {
  static auto get(const asio_wheel::deadline_handler<Operation>& h) noexcept
  {
    return Associator<typename Operation::handler_type, DefaultCandidate>::get(h.inner());
  }
  static auto get(const asio_wheel::deadline_handler<Operation>& h,
                  const DefaultCandidate& fallback) noexcept
    -> decltype(Associator<typename Operation::handler_type, DefaultCandidate>::get(h.inner(),
                                                                                    fallback))
  {
    return Associator<typename Operation::handler_type, DefaultCandidate>::get(h.inner(), fallback);
  }
};
