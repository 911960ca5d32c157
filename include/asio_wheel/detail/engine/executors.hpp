// L2 engine: executors of handlers: the executor inside, the work on it, and what it does with a
// function.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>

#include ASIO_WHEEL_ASIO(system_executor.hpp)

#include <concepts>
#include <new>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// Throws std::logic_error: the executor hides its context.
[[noreturn]] ASIO_WHEEL_EXPORT void fail_without_context();

template <class Executor>
inline constexpr bool hides_context = !asio::can_query_v<Executor, asio::execution::context_t> &&
                                      asio::execution::is_executor<Executor>::value;

/// Returns the executor inside a strand, and any other executor itself. The result does not track
/// work: it would keep the context running as long as the wheel lives.
[[nodiscard]] ASIO_WHEEL_EXPORT asio::any_io_executor innermost_executor(
  const asio::any_io_executor& ex);

template <class Executor>
inline constexpr bool is_strand = false;
template <class Inner>
inline constexpr bool is_strand<asio::strand<Inner>> = true;

/// The type of an executor that never calls a function at once.
template <class Executor>
using posting = std::decay_t<decltype(asio::require(std::declval<const Executor&>(),
                                                    asio::execution::blocking.never))>;

/// Returns the target of an erased executor if it is one of `Targets`; throws if not.
template <class... Targets, class Executor>
[[nodiscard]] asio::any_io_executor target_of(const Executor& ex)
{
  asio::any_io_executor found;
  const auto is_held = [&]<class Target>(const Target* target) {
    if (target) found = *target;
    return target != nullptr;
  };
  if (!(is_held(ex.template target<Targets>()) || ...)) fail_without_context();
  return found;
}

/// `ex`, or one like it that does not track work.
template <class Executor>
[[nodiscard]] auto without_work(const Executor& ex)
{
  constexpr auto untracked = asio::execution::outstanding_work.untracked;
  if constexpr (asio::can_prefer_v<const Executor&, decltype(untracked)>)
    return asio::prefer(ex, untracked);
  else
    return ex;  // of the older kind, as asio::executor
}

/// As above, for any executor type. An executor that hides its context, as any_completion_executor,
/// must hold an executor of Asio's own. Throws std::logic_error if none can be had.
template <class Executor>
[[nodiscard]] asio::any_io_executor innermost_executor([[maybe_unused]] const Executor& ex)
{
  if constexpr (std::is_constructible_v<asio::any_io_executor, const Executor&>) {
    return innermost_executor(asio::any_io_executor(ex));
  } else if constexpr (requires { ex.template target<asio::system_executor>(); }) {
    using io = asio::io_context::executor_type;
    using pool = asio::thread_pool::executor_type;
    using asio::strand;
    return innermost_executor(
      target_of<io, pool, strand<asio::any_io_executor>, strand<io>, strand<pool>, posting<io>,
                posting<pool>, asio::system_executor>(without_work(ex)));
  } else if constexpr (requires { ex.context().get_executor(); }) {
    return ex.context().get_executor();  // an io_context::strand
  } else {
    fail_without_context();
  }
}

/// As above, for a strand.
template <class Inner>
[[nodiscard]] asio::any_io_executor innermost_executor(const asio::strand<Inner>& ex)
{
  return innermost_executor(ex.get_inner_executor());
}

/// The context of an executor that does not hide it.
template <class Executor>
[[nodiscard]] asio::execution_context& context_of(const Executor& ex) noexcept
{
  if constexpr (asio::can_query_v<const Executor&, asio::execution::context_t>)
    return asio::query(ex, asio::execution::context);
  else
    return ex.context();
}

/// Returns true if `ex` is an executor of `context`.
template <class Executor>
[[nodiscard]] bool is_of_context(const Executor& ex,
                                 const asio::execution_context& context) noexcept
{
  return &context_of(ex) == &context;
}

/// A type-erased executor, as any_completion_executor. Not asio::executor: the newer of its
/// constructors accept an any_io_executor and do not compile with it.
template <class Executor>
concept erased_executor = asio::execution::is_executor<Executor>::value &&
  std::constructible_from<Executor, std::nothrow_t, const asio::any_io_executor&> &&
  requires(const Executor& ex)
{
  ex.target_type();
};

/// True if an executor can track work. The executors of promises and of the system cannot. Their
/// context starts its threads when it is asked for, and never goes.
template <class Executor>
inline constexpr bool tracks_work =
  erased_executor<Executor> || !asio::execution::is_executor<Executor>::value ||
  asio::can_require_v<Executor, asio::execution::outstanding_work_t::tracked_t>;
template <class Inner>
inline constexpr bool tracks_work<asio::strand<Inner>> = tracks_work<Inner>;

/// Returns a handler's executor. Throws std::bad_alloc if it is empty: a type-erased handler had no
/// memory for its type-erased executor. Asio does not throw, and an empty executor must not be
/// used.
template <class Executor>
[[nodiscard]] const Executor& require_target(const Executor& ex)
{
  if constexpr (erased_executor<Executor> && !std::is_same_v<Executor, asio::any_io_executor>)
    if (!ex) throw std::bad_alloc();
  return ex;
}

/// Returns true if `ex` is `native`, so that a function need not pass from one to the other.
template <class Executor>
[[nodiscard]] bool is_native(const Executor& ex, const asio::any_io_executor& native) noexcept
{
  if constexpr (std::is_same_v<Executor, asio::any_io_executor>) {
    return ex == native;
  } else if constexpr (erased_executor<Executor>) {
    // Without memory either is empty.
    return ex && ex == Executor(std::nothrow, native);
  } else {
    const Executor* target = native.target<Executor>();
    return target && *target == ex;
  }
}

/// True if an executor can be told not to call a function at once. any_completion_executor cannot.
template <class Executor>
inline constexpr bool never_blocks =
  !asio::execution::is_executor<Executor>::value ||
  asio::can_require_v<Executor, asio::execution::blocking_t::never_t>;

/// Work on a strand of an executor without `on_work_started()`, as any_io_executor. An
/// asio::executor_work_guard of such a strand does not compile on Boost 1.81, which takes every
/// strand for an executor of the older kind.
template <class Inner>
class strand_work {
public:
  explicit strand_work(const asio::strand<Inner>& ex)
    : strand_(ex),
      work_(asio::prefer(ex.get_inner_executor(), asio::execution::outstanding_work.tracked))
  {}

  [[nodiscard]] const asio::strand<Inner>& get_executor() const noexcept { return strand_; }

private:
  using tracked = asio::execution::outstanding_work_t::tracked_t;

  asio::strand<Inner> strand_;
  std::decay_t<typename asio::prefer_result<const Inner&, tracked>::type>
    work_;  ///< often of another type
};

template <class Executor>
struct work_on {
  using type = std::conditional_t<asio::execution::is_executor<Executor>::value ||
                                    asio::is_executor<Executor>::value,
                                  asio::executor_work_guard<Executor>, Executor>;
};
template <class Inner>
  requires(asio::is_executor<asio::strand<Inner>>::value && !asio::is_executor<Inner>::value)
struct work_on<asio::strand<Inner>> {
  using type = strand_work<Inner>;
};

/// Work that is outstanding on an executor. What is no executor, as no_executor, has none, and
/// stands for itself.
template <class Executor>
using executor_work = typename work_on<Executor>::type;

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
