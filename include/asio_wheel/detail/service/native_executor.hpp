// L2 service: the executor of a wheel's context.
#pragma once

#include <asio_wheel/asio.hpp>

#include <utility>
#include <variant>

namespace asio_wheel::detail {

/// The context's executor, with its type if that is one of Asio's own, whose contexts complete
/// their timers themselves and count them as work. For any other, Asio completes timers in a thread
/// of its own. Posting through the type uses the function's allocator; posting through
/// any_io_executor does not.
class native_executor {
public:
  explicit native_executor(const asio::any_io_executor& ex) : typed_(typed(ex)) {}

  template <class Function>
  void post(Function f) const
  {
    if (const auto* io = std::get_if<io_executor>(&typed_))
      asio::post(*io, std::move(f));
    else if (const auto* pool = std::get_if<pool_executor>(&typed_))
      asio::post(*pool, std::move(f));
    else
      asio::post(std::get<0>(typed_), std::move(f));
  }

  /// Whether the context runs the calling thread. False if the executor cannot say.
  [[nodiscard]] bool running_in_this_thread() const noexcept
  {
    if (const auto* io = std::get_if<io_executor>(&typed_)) return io->running_in_this_thread();
    const auto* pool = std::get_if<pool_executor>(&typed_);
    return pool && pool->running_in_this_thread();
  }

  /// Whether a timer's wait is work of the context.
  [[nodiscard]] bool counts_timers() const noexcept { return typed_.index() != 0; }

  /// What is work of a context that does not count its timers.
  [[nodiscard]] asio::any_io_executor work() const noexcept
  {
    return asio::prefer(std::get<0>(typed_), asio::execution::outstanding_work.tracked);
  }

private:
  using io_executor = asio::io_context::executor_type;
  using pool_executor = asio::thread_pool::executor_type;
  using variant = std::variant<asio::any_io_executor, io_executor, pool_executor>;

  static variant typed(const asio::any_io_executor& ex)
  {
    if (const auto* e = ex.target<io_executor>()) return *e;
#if !defined(BOOST_ASIO_HAS_IOCP) && !defined(ASIO_HAS_IOCP)
    if (const auto* e = ex.target<pool_executor>()) return *e;
#endif
    return ex;
  }

  variant typed_;
};

}  // namespace asio_wheel::detail
