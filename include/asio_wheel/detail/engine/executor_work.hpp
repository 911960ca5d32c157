// L2 engine: outstanding work on the executor of a handler.
#pragma once

#include <asio_wheel/asio.hpp>

#include <type_traits>

namespace asio_wheel::detail {

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

}  // namespace asio_wheel::detail
