// L3 timers: an executor, a context or a wheel as one parameter.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/use_wheel.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

#include <concepts>

namespace asio_wheel {

template <class Executor>
struct wheel_place;

namespace detail {
template <class T, class Executor>
concept executor_for_place =
  !std::same_as<T, wheel_place<Executor>> && std::convertible_to<const T&, Executor>;

template <class Executor>
concept made_of_any_executor = std::constructible_from<Executor, const asio::any_io_executor&>;
}  // namespace detail

/// A wheel, and the default executor of handlers. Meant for parameters: an executor, a context, a
/// wheel and `{wheel, executor}` convert to it.
template <class Executor = asio::any_io_executor>
struct wheel_place {
  /// The wheel of the executor's context (see use_wheel).
  template <detail::executor_for_place<Executor> Other>
  wheel_place(const Other& ex) : wheel(use_wheel(ex)),
                                 executor(ex)
  {}

  /// The wheel of a context (see use_wheel), with the context's executor.
  template <execution_context_type Context>
  wheel_place(Context& context) : wheel(use_wheel(context)),
                                  executor(context.get_executor())
  {}

  /// A given wheel, with its executor, if `Executor` can be made of an any_io_executor.
  wheel_place(wheel_timer_service& w) requires detail::made_of_any_executor<Executor>
    : wheel(w), executor(w.get_executor())
  {}

  /// A given wheel, with any executor.
  wheel_place(wheel_timer_service& w, const Executor& ex) : wheel(w), executor(ex) {}

  wheel_timer_service& wheel;  ///< holds the waits
  Executor executor;           ///< the default executor of handlers
};

}  // namespace asio_wheel
