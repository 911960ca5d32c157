// L3 timers: makes a context's wheel, and finds it again.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/executors.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

#include <concepts>

namespace asio_wheel {

namespace detail {
/// Says more than Asio's own "Service already exists.".
class wheel_already_exists : public asio::service_already_exists {
public:
  const char* what() const noexcept override
  {
    return "make_wheel: this context has a wheel already. It was made by an earlier make_wheel(), "
           "or, with default options, by the first timer, deadline or use_wheel() on the context. "
           "Call make_wheel() before all of these, or use_wheel() for the wheel that is there.";
  }
};

/// The part of use_wheel() for a thread that does not remember the wheel. Out of line, so that the
/// rest can be inline.
template <class Executor>
[[gnu::noinline, gnu::cold]] wheel_timer_service& find_wheel(asio::execution_context& context,
                                                             const Executor& ex)
{
  while (!asio::has_service<wheel_timer_service>(context)) {
    try {
      asio::make_service<wheel_timer_service>(context, innermost_executor(ex));
    } catch (const asio::service_already_exists&) {
      // Another thread was faster.
    }
  }
  auto& wheel = asio::use_service<wheel_timer_service>(context);
  remember_wheel(context, wheel);
  return wheel;
}
}  // namespace detail

/// An io_context, a thread_pool or the like, or what converts to one.
template <class T>
concept execution_context_type = std::convertible_to<T&, asio::execution_context&>;

/// Makes the wheel of `context`. The context must not have a wheel yet. Call it before anything
/// that makes a wheel with default options: use_wheel(), and timers and deadlines on the context or
/// its executor.
///
/// Exceptions: asio::service_already_exists if the context has a wheel; std::invalid_argument,
///   naming the first bad option and its range; std::bad_alloc; system_error if the context cannot
///   make what timers need, for example without a free file descriptor.
/// Thread safety: safe; if several threads call it, one succeeds.
template <execution_context_type Context>
wheel_timer_service& make_wheel(Context& context, const wheel_options& options = {})
{
  try {
    return asio::make_service<wheel_timer_service>(
      context, asio::any_io_executor(context.get_executor()), options);
  } catch (const asio::service_already_exists&) {
    throw detail::wheel_already_exists();
  }
}

/// The wheel of an executor's context; made with the default options if there is none. A strand has
/// the context of the executor inside. An any_io_executor must not be empty. An
/// any_completion_executor hides its context, so it must hold an executor or a strand of Asio's
/// own.
///
/// With an Asio that has `asio::config` (Boost 1.88 has it), the configuration of the context can
/// change the defaults: section `wheel`, keys `tick_usec`, `slots`, `shards`, `max_pending` and
/// `coarse_clock` (0 or 1). With `asio::io_context context{asio::config_from_env{}}` the
/// environment sets them, as in `ASIO_WHEEL_TICK_USEC=5000`. make_wheel() ignores the
/// configuration.
///
/// Exceptions: if a wheel is made, std::bad_alloc, and system_error as from make_wheel();
///   std::invalid_argument and std::out_of_range for a bad value in the configuration;
///   std::logic_error if the executor hides its context.
/// Thread safety: safe.
template <class Executor>
  requires(!execution_context_type<Executor>)
wheel_timer_service& use_wheel(const Executor& ex)
{
  if constexpr (!asio::can_query_v<const Executor&, asio::execution::context_t>) {
    return use_wheel(detail::innermost_executor(ex));
  } else {
    asio::execution_context& context = asio::query(ex, asio::execution::context);
    wheel_timer_service* const wheel = detail::recent_wheel(context);
    return wheel ? *wheel : detail::find_wheel(context, ex);
  }
}

/// The wheel of a context; made with the default options if there is none.
///
/// Exceptions: as above.
/// Thread safety: safe.
template <execution_context_type Context>
wheel_timer_service& use_wheel(Context& context)
{
  return use_wheel(context.get_executor());
}

}  // namespace asio_wheel
