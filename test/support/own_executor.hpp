// An executor of a user's own, on an io_context.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>
#include <functional>
#include <utility>

namespace support {

/// To the wheel, one of another library: it may have no memory for a function, or throw, block or
/// drop it.
class own_executor {
public:
  /// Asks `takes` about each function, which may throw instead of an answer. A function that is not
  /// taken is dropped. `takes` must outlive the executor.
  own_executor(boost::asio::any_io_executor inner, const std::function<bool()>& takes) noexcept
    : inner_(std::move(inner)),
      takes_(&takes)
  {}

  template <class Function>
  void execute(Function f) const
  {
    if (!(*takes_)()) return;
    boost::asio::require(inner_, boost::asio::execution::blocking.never).execute(std::move(f));
  }

  [[nodiscard]] boost::asio::execution_context& query(
    boost::asio::execution::context_t) const noexcept
  {
    return inner_.context();
  }
  [[nodiscard]] static constexpr boost::asio::execution::blocking_t query(
    boost::asio::execution::blocking_t) noexcept
  {
    return boost::asio::execution::blocking.never;
  }
  [[nodiscard]] own_executor require(boost::asio::execution::blocking_t::never_t) const noexcept
  {
    return *this;
  }
  [[nodiscard]] own_executor require(
    boost::asio::execution::outstanding_work_t::tracked_t tracked) const
  {
    return {boost::asio::prefer(inner_, tracked), *takes_};
  }
  [[nodiscard]] own_executor require(
    boost::asio::execution::outstanding_work_t::untracked_t untracked) const
  {
    return {boost::asio::prefer(inner_, untracked), *takes_};
  }

  friend bool operator==(const own_executor& a, const own_executor& b) noexcept
  {
    return &a.inner_.context() == &b.inner_.context();
  }
  friend bool operator!=(const own_executor& a, const own_executor& b) noexcept
  {
    return !(a == b);
  }

private:
  boost::asio::any_io_executor inner_;
  const std::function<bool()>* takes_;
};

}  // namespace support
