// L2 service: the executor of the context that a wheel lives in.
#pragma once

#include <asio_wheel/asio.hpp>

#include <utility>
#include <variant>

namespace asio_wheel::detail {

/// The context's executor with its type, where that is one of Asio's own: posting through it
/// then uses the function's allocator, which any_io_executor does not.
class native_executor {
public:
  explicit native_executor(const asio::any_io_executor& ex) : typed_(typed(ex)) {}

  template <class Function>
  void post(Function f) const
  {
    std::visit([&](const auto& ex) { asio::post(ex, std::move(f)); }, typed_);
  }

  /// Whether the context is running the caller. False where that cannot be known.
  [[nodiscard]] bool running_in_this_thread() const noexcept
  {
    const auto runs = [](const auto& ex) {
      if constexpr (requires { ex.running_in_this_thread(); })
        return ex.running_in_this_thread();
      else
        return false;
    };
    return std::visit(runs, typed_);
  }

private:
  using variant = std::variant<asio::any_io_executor, asio::io_context::executor_type,
                               asio::thread_pool::executor_type>;

  static variant typed(const asio::any_io_executor& ex)
  {
    if (const auto* e = ex.target<asio::io_context::executor_type>()) return *e;
    if (const auto* e = ex.target<asio::thread_pool::executor_type>()) return *e;
    return ex;
  }

  variant typed_;
};

}  // namespace asio_wheel::detail
