// L2 engine: tells if an executor has refused a function or dropped it.
#pragma once

#include <asio_wheel/detail/base/export.hpp>

namespace asio_wheel::detail {

/// One attempt to pass a function to an executor, on the stack of the thread that makes it.
///
/// An executor that throws destroys the function uncalled. An executor may also drop the function
/// later, as when its context goes. In the first case the thread owns again what the function
/// stands for. So the function's destructor calls `give_back()`: only if it returns false, the
/// function was dropped.
///
/// An executor may also throw because a function that it has called did. Then this function was
/// mostly called as well, and in any case it was not given back.
class ASIO_WHEEL_EXPORT submission {
public:
  explicit submission(const void* what) noexcept;
  submission(const submission&) = delete;
  submission& operator=(const submission&) = delete;
  ~submission();

  /// Returns true if the function was destroyed uncalled before the executor returned.
  [[nodiscard]] bool was_given_back() const noexcept { return given_back_; }

  /// The function for `what`, made for `attempt`, is being destroyed uncalled. Returns false if the
  /// attempt is over, or is another thread's.
  [[nodiscard]] static bool give_back(const submission* attempt, const void* what) noexcept;

private:
  const void* const what_;
  submission* const outer_;  ///< the attempt around it in this thread, or null
  bool given_back_ = false;
};

/// What an executor has done with a function.
enum class submission_result {
  taken,    ///< the executor has the function, or has called it
  refused,  ///< it threw: the caller owns the function again
  dropped,  ///< it destroyed the function without an exception
};

/// Calls `pass_on(attempt)`, which passes a function for `what` to an executor. Calls it again if
/// the executor refuses: an executor that refuses every other function might refuse this function
/// for ever, if other functions alternate with it. Throws what the executor throws once it has
/// taken the function.
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
