// L2 service: what an operation completed with, kept until its handler can be called.
#pragma once

#include <asio_wheel/service/asio.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace asio_wheel {

/// The arguments of a completion signature, by value.
template <class Signature>
struct signature_values;
template <class R, class... Args>
struct signature_values<R(Args...)> {
  using type = std::tuple<std::decay_t<Args>...>;
};
template <class R, class... Args>
struct signature_values<R(Args...) noexcept> {
  using type = std::tuple<std::decay_t<Args>...>;
};
template <class Signature>
using signature_values_t = typename signature_values<Signature>::type;

template <class Values>
inline constexpr bool begins_with_error = false;
template <class... Rest>
inline constexpr bool begins_with_error<std::tuple<error_code, Rest...>> = true;

/// A completion signature whose first argument is an error_code.
template <class Signature>
concept reports_error = begins_with_error<signature_values_t<Signature>>;

/// Room for the arguments of any one of the signatures.
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

  /// Puts `verdict`, if it is one, in the place of operation_aborted.
  void replace_abort(const error_code& verdict)
  {
    if (!verdict) return;
    const auto replace = [&]<class Values>(Values& values) {
      if constexpr (begins_with_error<Values>) {
        error_code& ec = std::get<0>(values);
        if (ec == asio::error::operation_aborted) ec = verdict;
      }
    };
    std::visit(replace, values_);
  }

  /// Calls the handler that `take_handler()` returns; by then nothing here is needed any more.
  /// Requires that this is not empty.
  template <class TakeHandler>
  void deliver_to(TakeHandler take_handler)
  {
    const auto deliver = [&]<class Values>(Values& values) {
      if constexpr (!std::is_same_v<Values, std::monostate>) {
        Values kept(std::move(values));
        std::apply(take_handler(), std::move(kept));
      }
    };
    std::visit(deliver, values_);
  }

private:
  template <class Values, class... Args>
  static constexpr bool fits = [] {
    if constexpr (std::tuple_size_v<Values> == sizeof...(Args))
      return std::is_constructible_v<Values, Args...>;
    else
      return false;
  }();

  /// The first signature that takes such arguments.
  template <class... Args>
  static constexpr std::size_t index_of()
  {
    std::size_t i = 0;
    const bool found = ((fits<signature_values_t<Signatures>, Args...> || (++i, false)) || ...);
    return found ? i : sizeof...(Signatures);
  }

  std::variant<std::monostate, signature_values_t<Signatures>...> values_;
};

}  // namespace asio_wheel
