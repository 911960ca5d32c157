// L2 engine: tells a function that an executor has refused from one that it has dropped.
#pragma once

#include <asio_wheel/detail/base/export.hpp>

namespace asio_wheel::detail {

/// One attempt to pass a function to an executor, on the stack of the thread that makes it.
///
/// An executor that throws destroys the function uncalled, and so does one that drops it later, as
/// when its context goes. In the first case what the function stands for is the thread's again. So
/// the function's destructor calls `give_back()`, and only where that returns false it was dropped.
///
/// An executor may throw, too, because a function that it has called did. Then this one was most
/// often called as well, and in any case it was not given back.
class ASIO_WHEEL_EXPORT submission {
public:
  explicit submission(const void* what) noexcept;
  submission(const submission&) = delete;
  submission& operator=(const submission&) = delete;
  ~submission();

  /// Whether the function was destroyed uncalled before the executor returned.
  [[nodiscard]] bool was_given_back() const noexcept { return given_back_; }

  /// The function for `what`, which was made for `attempt`, is being destroyed uncalled. Returns
  /// false if that attempt is over, or is another thread's.
  [[nodiscard]] static bool give_back(const submission* attempt, const void* what) noexcept;

private:
  const void* const what_;
  submission* const outer_;  ///< of this thread; null if none
  bool given_back_ = false;
};

/// What has become of a function.
enum class submission_result {
  taken,    ///< by the executor
  refused,  ///< by an exception: it is the caller's again
  dropped,  ///< the same, without one
};

/// Calls `pass_on(attempt)`, which passes a function for `what` to an executor. Twice if it is
/// refused: an executor that refuses every other function might refuse this one for ever, if other
/// functions take turns with it. Throws what the executor throws once it has taken the function.
template <class PassOn>
[[nodiscard]] submission_result submit(const void* what, PassOn pass_on)
{
  for (int i = 0; i < 2; ++i) {
    const submission attempt(what);
    try {
      pass_on(attempt);
      return attempt.was_given_back() ? submission_result::dropped : submission_result::taken;
    } catch (...) {
      if (!attempt.was_given_back()) throw;
    }
  }
  return submission_result::refused;
}

}  // namespace asio_wheel::detail
