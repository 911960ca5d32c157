// L3 timers: what an operation adds to the figures of its policy.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace asio_wheel::detail {

/// What a `timeout_policy` consists of.
class ASIO_WHEEL_EXPORT policy_state {
public:
  [[nodiscard]] policy_terms start(const wheel_core& c) noexcept;

protected:
  policy_state(std::string_view name, duration limit, const error_code& error)
    : name_(name),
      error_(error),
      limit_(limit)
  {}
  ~policy_state() = default;

  friend class policy_use;

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

/// What an operation reports when its deadline has come.
enum class policy_report : std::uint8_t {
  error,    ///< the error of the policy
  aborted,  ///< operation_aborted
  other,    ///< an earlier deadline came than the policy's
};

/// One operation, with or without a policy.
class ASIO_WHEEL_EXPORT policy_use {
public:
  /// Counts a start, if the filing has terms of a policy.
  template <class Filing>
  explicit policy_use(const Filing& where) noexcept
  {
    if (where.terms.policy) [[unlikely]]
      begin(where.terms, where.report());
  }

  /// Returns true if there is a policy.
  explicit operator bool() const noexcept { return policy_ != nullptr; }

  /// The operation ends now.
  void note_end(const wheel_core& c) noexcept;

  /// Counts an operation that has ended before its deadline.
  void count_met() noexcept;

  /// Counts an operation that has ended, or goes on without its handler. Replaces the error if the
  /// policy's deadline has come.
  void count(wait_outcome how, bool is_abandoned, error_code& ec) noexcept;

private:
  void begin(const policy_terms& terms, policy_report r) noexcept;

  policy_state* policy_ = nullptr;
  duration used_;  ///< from the start to the end
  duration allowed_;
  policy_report report_;
};

/// An operation that cannot have a policy.
struct no_policy {
  template <class Filing>
  explicit no_policy(const Filing&) noexcept
  {}
};

/// The limit of an operation with a policy; see time_limit.
struct policy_limit {
  /// Where the deadline is filed, and under which terms.
  struct filing_type : deadline_filing {
    policy_terms terms;
    bool is_cancel;

    [[nodiscard]] policy_report report() const noexcept
    {
      return is_cancel ? policy_report::aborted : policy_report::error;
    }
  };

  policy_state* policy;
  deadline_report report;
  wheel_core* core = nullptr;

  [[nodiscard]] bool is_of_executor() const noexcept { return !core; }  // as of time_limit
  [[nodiscard]] filing_type filing(wheel_core& c) const noexcept
  {
    const policy_terms terms = policy->start(c);
    return {{c, terms.allowed}, terms, report == deadline_report::aborted};
  }
};

/// The limit of a stream's operation. Its guard may have the terms of a policy.
struct stream_limit : guarded_by {
  struct filing_type : guard_filing {
    const policy_terms& terms;
    peer_activity feeds;

    [[nodiscard]] policy_report report() const noexcept
    {
      return by.cause == terms.cause ? policy_report::error : policy_report::other;
    }
  };

  stream_limit(guard_ptr g, time_point t, std::uint8_t c, peer_activity f) noexcept
    : guarded_by(std::move(g), t, c),
      feeds(f)
  {}
  stream_limit(const stream_limit&) = default;
  stream_limit(stream_limit&&) = default;
  stream_limit& operator=(const stream_limit&) = default;
  stream_limit& operator=(stream_limit&&) = default;
  [[gnu::always_inline]] ~stream_limit() = default;  // as of guarded_by

  [[nodiscard]] static bool is_of_executor() noexcept { return true; }  // as of time_limit
  [[nodiscard]] filing_type filing() noexcept { return {{*this}, guard->terms, feeds}; }

  peer_activity feeds;  ///< what the operation's bytes are to those that the stream feeds
};

/// An operation of a stream, for those that the stream feeds.
class stream_feed {
public:
  explicit stream_feed(const stream_limit::filing_type& where) noexcept : bytes_are_(where.feeds) {}

  /// The operation has ended with `n` bytes.
  void pass_on(const operation_guard& of_stream, const error_code&, std::size_t n) const noexcept
  {
    if (bytes_are_ != peer_activity::none && n != 0) [[unlikely]]
      of_stream.pass_on(bytes_are_);
  }

private:
  const peer_activity bytes_are_;
};

/// An operation of anything else.
struct no_feed {
  template <class Filing>
  explicit no_feed(const Filing&) noexcept
  {}
};

}  // namespace asio_wheel::detail
