// L2 engine: a timeout that depends on how busy the program says it is.
#pragma once

#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>

#include <atomic>
#include <cstddef>

namespace asio_wheel::detail {

/// Base of an object with a timeout that depends on the pressure, between `shortest_` and
/// `longest_`. If both are equal, the timeout is fixed, and the pressure need not know the object.
class ASIO_WHEEL_EXPORT adaptive {
public:
  /// The timeout under a pressure of `p`.
  [[nodiscard]] duration timeout_under(double p) const noexcept;

protected:
  adaptive(time_point touched, duration longest, duration shortest) noexcept
    : touched_(touched),
      longest_(longest),
      shortest_(shortest)
  {}
  ~adaptive() = default;

  [[nodiscard]] bool is_fixed() const noexcept
  {
    return shortest_.load(std::memory_order_relaxed) == longest_.load();
  }

  // Any thread may read and write these at any time.
  std::atomic<time_point> touched_;  ///< the timeout counts from here
  std::atomic<duration> longest_;
  std::atomic<duration> shortest_;

private:
  friend class pressure;

  /// The deadline is due soon: files what is pending earlier.
  virtual void follow_pressure() noexcept = 0;

  static constexpr auto none = ~std::size_t{0};
  std::size_t place_ = none;  ///< in the pressure's list; guarded by the pressure's lock
};

}  // namespace asio_wheel::detail
