// L2 service: finds the executor through which a wheel completes its waits.
#pragma once

#include <asio_wheel/asio.hpp>

namespace asio_wheel::detail {

/// The executor inside a strand, and any other executor itself. It does not track work, which would
/// keep the context running as long as it has a wheel.
[[nodiscard]] asio::any_io_executor innermost_executor(const asio::any_io_executor& ex);

/// The same for any other executor.
template <class Executor>
[[nodiscard]] asio::any_io_executor innermost_executor(const Executor& ex)
{
  return innermost_executor(asio::any_io_executor(ex));
}

/// The same for a strand.
template <class Inner>
[[nodiscard]] asio::any_io_executor innermost_executor(const asio::strand<Inner>& ex)
{
  return innermost_executor(ex.get_inner_executor());
}
inline asio::any_io_executor innermost_executor(const asio::any_io_executor& ex)
{
  using asio::strand;
  if (const auto* s = ex.target<strand<asio::any_io_executor>>()) return innermost_executor(*s);
  if (const auto* s = ex.target<strand<asio::io_context::executor_type>>())
    return innermost_executor(*s);
  if (const auto* s = ex.target<strand<asio::thread_pool::executor_type>>())
    return innermost_executor(*s);
  return asio::prefer(ex, asio::execution::outstanding_work.untracked,
                      asio::execution::blocking.possibly);
}

}  // namespace asio_wheel::detail
