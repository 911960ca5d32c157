// L2 engine: finds the executor through which a wheel completes its waits.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/export.hpp>

#include ASIO_WHEEL_ASIO(system_executor.hpp)

#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// Throws std::logic_error: the executor hides its context.
[[noreturn]] ASIO_WHEEL_EXPORT void fail_without_context();

template <class Executor>
inline constexpr bool hides_context = !asio::can_query_v<Executor, asio::execution::context_t> &&
                                      asio::execution::is_executor<Executor>::value;

/// Returns the executor inside a strand, and any other executor itself. The result does not track
/// work: it would keep the context running as long as the wheel lives.
[[nodiscard]] ASIO_WHEEL_EXPORT asio::any_io_executor innermost_executor(
  const asio::any_io_executor& ex);

/// The type of an executor that never calls a function at once.
template <class Executor>
using posting = std::decay_t<decltype(asio::require(std::declval<const Executor&>(),
                                                    asio::execution::blocking.never))>;

/// Returns the target of an erased executor if it is one of `Targets`; throws if not.
template <class... Targets, class Executor>
[[nodiscard]] asio::any_io_executor target_of(const Executor& ex)
{
  asio::any_io_executor found;
  const auto is_held = [&]<class Target>(const Target* target) {
    if (target) found = *target;
    return target != nullptr;
  };
  if (!(is_held(ex.template target<Targets>()) || ...)) fail_without_context();
  return found;
}

/// As above, for any executor type. An executor that hides its context, as any_completion_executor,
/// must hold an executor of Asio's own. Throws std::logic_error if none can be had.
template <class Executor>
[[nodiscard]] asio::any_io_executor innermost_executor([[maybe_unused]] const Executor& ex)
{
  if constexpr (std::is_constructible_v<asio::any_io_executor, const Executor&>) {
    return innermost_executor(asio::any_io_executor(ex));
  } else if constexpr (requires { ex.template target<asio::system_executor>(); }) {
    using io = asio::io_context::executor_type;
    using pool = asio::thread_pool::executor_type;
    using asio::strand;
    return innermost_executor(
      target_of<io, pool, strand<asio::any_io_executor>, strand<io>, strand<pool>, posting<io>,
                posting<pool>, asio::system_executor>(
        asio::prefer(ex, asio::execution::outstanding_work.untracked)));
  } else {
    fail_without_context();
  }
}

/// As above, for a strand.
template <class Inner>
[[nodiscard]] asio::any_io_executor innermost_executor(const asio::strand<Inner>& ex)
{
  return innermost_executor(ex.get_inner_executor());
}

/// The context of an executor that does not hide it.
template <class Executor>
[[nodiscard]] asio::execution_context& context_of(const Executor& ex) noexcept
{
  if constexpr (asio::can_query_v<const Executor&, asio::execution::context_t>)
    return asio::query(ex, asio::execution::context);
  else
    return ex.context();
}

/// Returns true if `ex` is an executor of `context`.
template <class Executor>
[[nodiscard]] bool is_of_context(const Executor& ex,
                                 const asio::execution_context& context) noexcept
{
  return &context_of(ex) == &context;
}

}  // namespace asio_wheel::detail
