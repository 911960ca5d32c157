// L2 engine: a timeout that depends on how busy the program says it is.
#pragma once

#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>

#include <atomic>
#include <cstddef>
#include <limits>

namespace asio_wheel::detail {

/// Base of an object with a timeout that depends on the pressure, between `shortest_` and
/// `longest_`. If both are equal, the timeout is fixed, and the pressure need not know the object.
class ASIO_WHEEL_EXPORT adaptive {
public:
  adaptive(const adaptive&) = delete;
  adaptive& operator=(const adaptive&) = delete;

  /// The timeout under a pressure of `p`.
  [[nodiscard]] duration timeout_under(double p) const noexcept;

protected:
  adaptive(time_point touched, duration longest, duration shortest) noexcept
    : touched_(touched),
      longest_(longest),
      shortest_(shortest)
  {}
  ~adaptive() = default;

  /// Returns true from add() to remove().
  [[nodiscard]] bool is_swept() const noexcept
  {
    return place_.load(std::memory_order_relaxed) != none;
  }

  // Any thread may read and write these at any time.
  std::atomic<time_point> touched_;  ///< the timeout counts from here
  std::atomic<duration> longest_;
  std::atomic<duration> shortest_;

private:
  friend class pressure;
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// The deadline is due soon: files what is pending earlier.
  virtual void follow_pressure() noexcept = 0;

  std::atomic<std::size_t> place_{
    none};  ///< in the pressure's list; written under the pressure's lock
};

}  // namespace asio_wheel::detail
