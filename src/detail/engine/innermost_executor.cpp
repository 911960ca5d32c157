// L2 engine: finds the executor inside strands.
#include <asio_wheel/detail/engine/innermost_executor.hpp>

#include <stdexcept>

namespace asio_wheel::detail {

void fail_without_context()
{
  throw std::logic_error(
    "use_wheel: this executor hides its context, and is not one of Asio's own behind that. Give "
    "the context, its own executor or the wheel");
}

asio::any_io_executor innermost_executor(const asio::any_io_executor& ex)
{
  using asio::strand;
  asio::any_io_executor e = asio::prefer(ex, asio::execution::outstanding_work.untracked,
                                         asio::execution::blocking.possibly);
  if (const auto* s = e.target<strand<asio::any_io_executor>>()) return innermost_executor(*s);
  if (const auto* s = e.target<strand<asio::io_context::executor_type>>())
    return innermost_executor(*s);
  if (const auto* s = e.target<strand<asio::thread_pool::executor_type>>())
    return innermost_executor(*s);
  return e;
}

}  // namespace asio_wheel::detail
