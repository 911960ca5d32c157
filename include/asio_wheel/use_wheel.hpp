// L3 roof: making a context's wheel and finding it again.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/service/innermost_executor.hpp>
#include <asio_wheel/detail/service/recent_wheel.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

#include <concepts>
#include <type_traits>

namespace asio_wheel {

/// An io_context, a thread_pool or the like.
template <class T>
concept execution_context_type = std::derived_from<T, asio::execution_context>;

/// Makes the wheel of `context`, which has none yet.
///
/// Exceptions: asio::service_already_exists if it has; std::invalid_argument that names the first
///   bad option and its range; std::bad_alloc.
/// Thread safety: safe; of several threads one succeeds.
template <execution_context_type Context>
wheel_timer_service& make_wheel(Context& context, const wheel_options& options = {})
{
  return asio::make_service<wheel_timer_service>(
    context, asio::any_io_executor(context.get_executor()), options);
}

/// The wheel of an executor's context, made with the default options if it has none. Of a strand
/// it is that of the executor inside.
///
/// Exceptions: std::bad_alloc, if it has to be made.
/// Thread safety: safe.
template <class Executor>
  requires(!execution_context_type<Executor>)
wheel_timer_service& use_wheel(const Executor& ex)
{
  asio::execution_context& context = asio::query(ex, asio::execution::context);
  if (wheel_timer_service* const wheel = detail::recent_wheel(context)) return *wheel;
  while (!asio::has_service<wheel_timer_service>(context)) {
    try {
      asio::make_service<wheel_timer_service>(context, detail::innermost_executor(ex));
    } catch (const asio::service_already_exists&) {
      // Another thread was faster.
    }
  }
  auto& wheel = asio::use_service<wheel_timer_service>(context);
  detail::remember_wheel(context, wheel);
  return wheel;
}

/// The wheel of a context, made with the default options if it has none.
///
/// Exceptions: std::bad_alloc, if it has to be made.
/// Thread safety: safe.
template <execution_context_type Context>
wheel_timer_service& use_wheel(Context& context)
{
  return use_wheel(context.get_executor());
}

}  // namespace asio_wheel
