// L2 engine: keeps an operation's result until its handler can be called.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>

#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace asio_wheel::detail {

/// The arguments of a completion signature, by value.
template <class Signature>
struct signature_values;
template <class R, class... Args>
struct signature_values<R(Args...)> {
  using type = std::tuple<std::decay_t<Args>...>;
};
template <class R, class... Args>
struct signature_values<R(Args...) noexcept> : signature_values<R(Args...)> {};
template <class R, class... Args>
struct signature_values<R(Args...)&> : signature_values<R(Args...)> {};
template <class R, class... Args>
struct signature_values<R(Args...)& noexcept> : signature_values<R(Args...)> {};
template <class R, class... Args>
struct signature_values<R(Args...) &&> : signature_values<R(Args...)> {};
template <class R, class... Args>
struct signature_values<R(Args...)&& noexcept> : signature_values<R(Args...)> {};
template <class Signature>
using signature_values_t = typename signature_values<Signature>::type;

template <class Values>
inline constexpr bool begins_with_error = false;
template <class... Rest>
inline constexpr bool begins_with_error<std::tuple<error_code, Rest...>> = true;
template <class... Rest>
inline constexpr bool begins_with_error<std::tuple<std::exception_ptr, Rest...>> = true;

/// A completion signature whose first argument is an error_code or an exception_ptr.
template <class Signature>
concept reports_error = begins_with_error<signature_values_t<Signature>>;

/// Returns true if this is a system_error with operation_aborted, or asio::multiple_exceptions that
/// begin with one.
[[nodiscard]] ASIO_WHEEL_EXPORT bool is_abort(const std::exception_ptr& e) noexcept;

/// A system_error with `ec`.
[[nodiscard]] ASIO_WHEEL_EXPORT std::exception_ptr exception_of(const error_code& ec) noexcept;

/// Calls a handler. `replacement`, if set, takes the place of operation_aborted.
template <class Handler, class... Args>
void call_with_replacement(const error_code& replacement, Handler&& handler, Args&&... args)
{
  const auto replace = [&replacement]<class Arg>(Arg&& arg) -> decltype(auto) {
    if constexpr (std::is_same_v<std::decay_t<Arg>, error_code>)
      return replacement && arg == asio::error::operation_aborted ? replacement : error_code(arg);
    else if constexpr (std::is_same_v<std::decay_t<Arg>, std::exception_ptr>)
      return replacement && is_abort(arg) ? exception_of(replacement)
                                          : std::exception_ptr(std::forward<Arg>(arg));
    else
      return std::forward<Arg>(arg);
  };
  const auto call = [&]<class First, class... Rest>(First&& first, Rest&&... rest) {
    std::forward<Handler>(handler)(replace(std::forward<First>(first)),
                                   std::forward<Rest>(rest)...);
  };
  if constexpr (sizeof...(Args) == 0)
    std::forward<Handler>(handler)();
  else
    call(std::forward<Args>(args)...);
}

/// Holds the arguments of any one of the signatures.
template <class... Signatures>
class completion_result {
public:
  [[nodiscard]] bool empty() const noexcept { return values_.index() == 0; }

  template <class... Args>
  void store(Args&&... args)
  {
    constexpr std::size_t i = index_of<Args...>();
    static_assert(i < sizeof...(Signatures),
                  "the operation completes with arguments that fit none of its signatures");
    values_.template emplace<i + 1>(std::forward<Args>(args)...);
  }

  /// Calls `call` with the arguments, to be moved from. Requires that it is not empty.
  template <class Call>
  void deliver(Call call)
  {
    const auto pass_on = [&]<class Values>(Values& values) {
      if constexpr (!std::is_same_v<Values, std::monostate>) std::apply(call, std::move(values));
    };
    std::visit(pass_on, values_);
  }

private:
  template <class Values, class... Args>
  static constexpr bool fits = [] {
    if constexpr (std::tuple_size_v<Values> == sizeof...(Args))
      return std::is_constructible_v<Values, Args...>;
    else
      return false;
  }();

  /// The index of the signature with exactly these arguments, or else of the first that takes them.
  template <class... Args>
  static constexpr std::size_t index_of()
  {
    using given = std::tuple<std::decay_t<Args>...>;
    std::size_t i = 0;
    if (((std::is_same_v<signature_values_t<Signatures>, given> || (++i, false)) || ...)) return i;
    i = 0;
    static_cast<void>(((fits<signature_values_t<Signatures>, Args...> || (++i, false)) || ...));
    return i;
  }

  std::variant<std::monostate, signature_values_t<Signatures>...> values_;
};

}  // namespace asio_wheel::detail
