// L2 engine: finds the executor inside strands; each thread's attempts to pass functions to
// executors.
#include <asio_wheel/detail/engine/executors.hpp>

#include <stdexcept>

namespace asio_wheel::detail {
namespace {

constinit thread_local submission* innermost_submission = nullptr;

}  // namespace

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

submission::submission(const void* what) noexcept : what_(what), outer_(innermost_submission)
{
  innermost_submission = this;
}

submission::~submission()
{
  innermost_submission = outer_;
}

bool submission::give_back(const submission* attempt, const void* what) noexcept
{
  for (submission* s = innermost_submission; s; s = s->outer_) {
    if (s != attempt || s->what_ != what) continue;
    s->given_back_ = true;
    return true;
  }
  return false;
}

}  // namespace asio_wheel::detail
