// L2 engine: each thread's attempts to pass functions to executors.
#include <asio_wheel/detail/engine/submission.hpp>

namespace asio_wheel::detail {
namespace {

constinit thread_local submission* innermost = nullptr;

}  // namespace

submission::submission(const void* what) noexcept : what_(what), outer_(innermost)
{
  innermost = this;
}

submission::~submission()
{
  innermost = outer_;
}

bool submission::give_back(const submission* attempt, const void* what) noexcept
{
  for (submission* s = innermost; s; s = s->outer_) {
    if (s != attempt || s->what_ != what) continue;
    s->given_back_ = true;
    return true;
  }
  return false;
}

}  // namespace asio_wheel::detail
