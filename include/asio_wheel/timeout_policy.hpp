// L3 timers: a timeout with a name, a duration that may be changed, and figures of its own.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/timers/deadline_token.hpp>
#include <asio_wheel/detail/timers/policy_use.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace asio_wheel {

/// A reading of a policy's figures since the policy was made. An operation counts only as started
/// if it was destroyed, if the wheel refused its deadline, or if cancel_all() made abandon_after
/// give it up.
struct timeout_policy_stats {
  std::uint64_t started = 0;    ///< operations
  std::uint64_t met = 0;        ///< operations that ended before the deadline came
  std::uint64_t expired = 0;    ///< operations that were cancelled at the deadline
  std::uint64_t abandoned = 0;  ///< expired operations that did not listen (abandon_after)
  share_histogram share_used;   ///< by the operations in `met`
};

/// A timeout with a name. A program has one for each kind of operation.
///
///     inline asio_wheel::timeout_policy header{"redis header", 5s};
///
///     co_await asio::async_read(socket, buffer, timeout_after(header));
///     header.set(3s);  // for operations that start from now on
///
/// It takes the place of the delay in cancel_after, timeout_after and abandon_after. A wheel or a
/// timer may come before it, a type of cancellation and a token after it. An operation with a
/// policy reads the clock twice more. prometheus() in fmt.hpp exports the figures.
///
/// A policy must outlive its operations.
///
/// Thread safety: every member may be called from any thread at any time.
class ASIO_WHEEL_EXPORT timeout_policy : public detail::policy_state {
public:
  using duration = detail::duration;  ///< of the wheel's clock

  /// @param name   for people and for metrics; copied.
  /// @param limit  how long an operation may take; zero or less is at once, and the max() of any
  ///               duration is never.
  /// @param error  what timeout_after and abandon_after report in place of operation_aborted. Two
  ///               nested deadlines may have different errors.
  /// Exceptions: std::bad_alloc.
  timeout_policy(std::string_view name, detail::any_delay limit,
                 error_code error = asio::error::timed_out)
    : policy_state(name, limit, error)
  {}
  timeout_policy(const timeout_policy&) = delete;
  timeout_policy& operator=(const timeout_policy&) = delete;

  /// The name.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// How long an operation that starts now may take.
  [[nodiscard]] duration limit() const noexcept { return limit_.load(std::memory_order_relaxed); }

  /// Sets the limit. Running operations keep their own.
  void set(detail::any_delay limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }

  /// What is reported if the policy ends an operation.
  [[nodiscard]] const error_code& error() const noexcept { return error_; }

  /// A reading of the figures. Operations that end meanwhile may be in some figures only.
  [[nodiscard]] timeout_policy_stats stats() const noexcept;
};

}  // namespace asio_wheel
