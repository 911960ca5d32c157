// L3 timers: a handler that counts how its operation ends.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace asio_wheel::detail {

/// What a `timeout_policy` consists of.
class ASIO_WHEEL_EXPORT policy_state {
protected:
  policy_state(std::string_view name, duration limit, const error_code& error)
    : name_(name),
      error_(error),
      limit_(limit)
  {}
  ~policy_state() = default;

  friend class policy_use;
  friend struct policy_limit;

  void count_met(duration taken, duration allowed) noexcept;

  const std::string name_;
  const error_code error_;
  std::atomic<duration> limit_;
  std::atomic<std::uint64_t> started_{0};
  std::atomic<std::uint64_t> met_millionths_{0};  ///< shares used, added up
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> abandoned_{0};
  std::array<std::atomic<std::uint64_t>, share_histogram::size> met_{};
};

/// One operation under a policy.
class ASIO_WHEEL_EXPORT policy_use {
public:
  policy_use(policy_state& policy, wheel_core& core, duration allowed,
             deadline_report report) noexcept;

  /// What to report in place of an abort. Counts a deadline that has come.
  [[nodiscard]] error_code replacement(wait_outcome how) noexcept;

  /// The operation goes on without its handler.
  void count_abandoned() noexcept;

  /// The handler is called: counts the operation as met, unless its deadline has come.
  void end() noexcept;

private:
  policy_state* policy_;
  intrusive_ptr<wheel_core> core_;
  duration allowed_;
  time_point start_;
  bool is_cancel_;            ///< reports operation_aborted
  bool is_met_ = true;        ///< as far as known
  bool has_expired_ = false;  ///< its deadline has come
};

/// The limit of an operation that has a policy; see time_limit.
struct policy_limit {
  policy_state* policy;
  wheel_core* core = nullptr;
  duration allowed{};  ///< set by filing()

  [[nodiscard]] ASIO_WHEEL_EXPORT deadline_filing filing(wheel_core& c) noexcept;
};

/// The user's handler with its policy.
template <class Handler>
class metered_handler {
public:
  template <class H>
  metered_handler(H&& handler, policy_use use)
    : handler_(std::forward<H>(handler)),
      use_(std::move(use))
  {}

  [[nodiscard]] error_code replacement(wait_outcome how) noexcept { return use_.replacement(how); }
  void count_abandoned() noexcept { use_.count_abandoned(); }

  [[nodiscard]] const Handler& inner() const noexcept { return handler_; }

  template <class... Args>
  void operator()(Args&&... args)
  {
    use_.end();
    std::move(handler_)(std::forward<Args>(args)...);
  }

private:
  Handler handler_;
  policy_use use_;
};

}  // namespace asio_wheel::detail

template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct asio_wheel::asio::associator<Associator, asio_wheel::detail::metered_handler<Handler>,
                                    DefaultCandidate> : Associator<Handler, DefaultCandidate> {
  static auto get(const asio_wheel::detail::metered_handler<Handler>& h) noexcept
  {
    return Associator<Handler, DefaultCandidate>::get(h.inner());
  }
  static auto get(const asio_wheel::detail::metered_handler<Handler>& h,
                  const DefaultCandidate& fallback) noexcept
    -> decltype(Associator<Handler, DefaultCandidate>::get(h.inner(), fallback))
  {
    return Associator<Handler, DefaultCandidate>::get(h.inner(), fallback);
  }
};
