// L2 engine: handlers around a user's handler.
#pragma once

#include <asio_wheel/asio.hpp>

#include <concepts>
#include <utility>

namespace asio_wheel::detail {

/// True for a handler around another handler: `wrapped_handler` is the other's type, and `inner()`
/// returns the other. Its associated objects are the other's, except those that it has itself.
template <class T>
concept wraps_handler =
  std::same_as<decltype(std::declval<const T&>().inner()), const typename T::wrapped_handler&>;

}  // namespace asio_wheel::detail

template <template <class, class> class Associator, asio_wheel::detail::wraps_handler Outer,
          class DefaultCandidate>
struct asio_wheel::asio::associator<Associator, Outer, DefaultCandidate>
  : Associator<typename Outer::wrapped_handler, DefaultCandidate> {
  using of_inner = Associator<typename Outer::wrapped_handler, DefaultCandidate>;

  static auto get(const Outer& outer) noexcept { return of_inner::get(outer.inner()); }
  static auto get(const Outer& outer, const DefaultCandidate& fallback) noexcept
    -> decltype(of_inner::get(outer.inner(), fallback))
  {
    return of_inner::get(outer.inner(), fallback);
  }
};
