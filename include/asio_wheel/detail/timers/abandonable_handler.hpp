// L3 timers: a handler that may be called before its operation has ended.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/completion_result.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/wait_handler.hpp>

#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// Counts an operation that was abandoned, until it ends.
class abandoned_mark {
public:
  abandoned_mark() = default;
  explicit abandoned_mark(wheel_core& core) noexcept : core_(&core) { ++abandoned_on(core); }
  abandoned_mark(abandoned_mark&&) noexcept = default;
  abandoned_mark& operator=(abandoned_mark&& other) noexcept
  {
    core_.swap(other.core_);
    return *this;
  }
  ~abandoned_mark()
  {
    if (core_) --abandoned_on(*core_);
  }

private:
  intrusive_ptr<wheel_core> core_;
};

/// A copy of a handler's executor.
template <class Executor>
struct executor_copy {
  using executor_type = Executor;

  [[nodiscard]] const executor_type& get_executor() const noexcept { return executor; }

  Executor executor;
};

/// For a handler without an executor.
template <>
struct executor_copy<no_executor> {
  no_executor executor;
};

/// The user's handler in the state of an operation that may be **abandoned**: the handler is moved
/// out and called, and the state is left to the operation. A later result ends here.
///
/// The operation gets a copy of the handler's executor, and no allocator of the handler, as the
/// handler may be gone.
template <class Handler, class Executor>
class abandonable_handler : public executor_copy<Executor> {
public:
  template <class H>
  abandonable_handler(H&& handler, const Executor& ex)
    : executor_copy<Executor>{ex},
      handler_(std::forward<H>(handler))
  {}

  /// Takes the handler out, and counts the operation until this object goes. Throws what the move
  /// of the handler throws. The handler is gone then.
  [[nodiscard]] Handler abandon(wheel_core& core)
  {
    mark_ = abandoned_mark(core);
    const reset_at_end then{handler_};
    return *std::move(handler_);
  }

  [[nodiscard]] const Handler& inner() const noexcept { return *handler_; }

  /// How often the operation had time to end since it was asked to stop; zero if it was not asked.
  std::uint8_t turns = 0;

  template <class... Args>
  void operator()(Args&&... args)
  {
    if (handler_) (*std::move(handler_))(std::forward<Args>(args)...);
  }

private:
  struct reset_at_end {
    std::optional<Handler>& handler;
    ~reset_at_end() { handler.reset(); }
  };

  std::optional<Handler> handler_;
  abandoned_mark mark_;
};

template <class T>
inline constexpr bool is_abandonable = false;
template <class Handler, class Executor>
inline constexpr bool is_abandonable<abandonable_handler<Handler, Executor>> = true;

/// Makes an abandonable_handler of a handler, offering it `candidate`, the operation's executor.
template <class Handler, class Candidate>
[[nodiscard]] auto make_abandonable(Handler&& handler, [[maybe_unused]] const Candidate& candidate)
{
  using handler_type = std::decay_t<Handler>;
  if constexpr (lacks_executor<handler_type>) {
    return abandonable_handler<handler_type, no_executor>(std::forward<Handler>(handler), {});
  } else {
    using executor = std::decay_t<asio::associated_executor_t<handler_type, Candidate>>;
    const executor ex = require_target<executor>(asio::get_associated_executor(handler, candidate));
    return abandonable_handler<handler_type, executor>(std::forward<Handler>(handler), ex);
  }
}

/// The default values of the arguments of the first signature, once they are made.
template <class... Signatures>
using results_by_default =
  std::optional<signature_values_t<std::tuple_element_t<0, std::tuple<Signatures...>>>>;

/// Calls a handler with `ec` in the place of the first value.
template <class Handler, class Values>
void call_with_error(Handler&& handler, Values&& values, const error_code& ec)
{
  if constexpr (std::is_same_v<std::tuple_element_t<0, Values>, error_code>)
    std::get<0>(values) = ec;
  else
    std::get<0>(values) = exception_of(ec);
  std::apply(std::forward<Handler>(handler), std::move(values));
}

}  // namespace asio_wheel::detail

/// Asked for only when the operation starts, while the handler is there.
template <class Handler, class Executor, class Slot>
struct asio_wheel::asio::associated_cancellation_slot<
  asio_wheel::detail::abandonable_handler<Handler, Executor>, Slot> {
  using type = associated_cancellation_slot_t<Handler, Slot>;

  static auto get(const asio_wheel::detail::abandonable_handler<Handler, Executor>& h) noexcept
  {
    return get(h, Slot());
  }
  static auto get(const asio_wheel::detail::abandonable_handler<Handler, Executor>& h,
                  const Slot& slot) noexcept
  {
    return associated_cancellation_slot<Handler, Slot>::get(h.inner(), slot);
  }
};
