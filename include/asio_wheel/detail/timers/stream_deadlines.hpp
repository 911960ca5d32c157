// L3 timers: the deadlines of a stream's reads and writes.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>
#include <asio_wheel/detail/engine/operation_guard.hpp>
#include <asio_wheel/detail/timers/policy_use.hpp>
#include <asio_wheel/stream_limits.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace asio_wheel::detail {

/// What an operation of a stream does.
enum class stream_act : std::uint8_t { connect, read, write };

/// When the operations of a `timed_stream` are to end: what the user has set, and the guard of
/// running operations. As thread-safe as the stream.
class stream_deadlines {
public:
  stream_deadlines() = default;
  stream_deadlines(stream_deadlines&& other) noexcept { swap(other); }
  stream_deadlines& operator=(stream_deadlines&& other) noexcept
  {
    stream_deadlines(std::move(other)).swap(*this);
    return *this;
  }
  ~stream_deadlines()
  {
    if (guard_) guard_->close();
  }

  /// The wheel's core. Calls `wheel()` for it the first time.
  template <class Wheel>
  [[nodiscard]] wheel_core& core(Wheel wheel)
  {
    if (!guard_) guard_ = guard_ptr(new operation_guard(wheel()));
    return guard_->core();
  }

  void set_expiry(time_point expiry) noexcept
  {
    expiry_ = expiry;
    if (guard_) guard_->terms.policy = nullptr;
  }

  // These require core().

  /// Operations that start from now on have the policy.
  void set_expiry(policy_state& policy) noexcept
  {
    policy_terms& terms = guard_->terms;
    terms = policy.start(guard_->core());
    terms.cause = static_cast<std::uint8_t>(stream_timeout::expiry);
    // So operations without a deadline are counted, too.
    expiry_ = std::min(from_now(terms.allowed), guarded_by::latest);
  }

  void set_limits(const stream_limits& limits) noexcept
  {
    limits_ = limits;
    end_ = from_now(limits.total);
  }

  /// When an operation is to end, and why.
  struct end_of_operation {
    time_point until;
    stream_timeout cause;
  };

  /// The end of an operation that starts now.
  template <stream_act Act>
  [[nodiscard]] end_of_operation end_of() const noexcept
  {
    constexpr bool reads = Act == stream_act::read;
    const duration limit = reads ? limits_.read_idle : limits_.write_stall;
    const time_point own = limit == duration::max() ? time_point::max() : from_now(limit);
    if (own < std::min(expiry_, end_))
      return {own, reads ? stream_timeout::read_idle : stream_timeout::write_stall};
    if (end_ < expiry_) return {end_, stream_timeout::total};
    return {expiry_, stream_timeout::expiry};
  }

  /// What guards an operation with this end, whose bytes feed others as `feeds`. Requires core().
  [[nodiscard]] stream_limit limit(const end_of_operation& end,
                                   peer_activity feeds = peer_activity::none) const noexcept
  {
    return {guard_, end.until < guarded_by::latest ? end.until : guarded_by::no_deadline,
            static_cast<std::uint8_t>(end.cause), feeds};
  }
  [[nodiscard]] bool has_passed(time_point until) const noexcept
  {
    return guard_->has_passed(until);
  }

  /// Counts an operation whose end was past before it started. Returns what the operation reports.
  [[nodiscard]] error_code time_out(const end_of_operation& end) const noexcept
  {
    error_code ec = guard_->note_timeout(static_cast<std::uint8_t>(end.cause));
    stream_limit by = limit(end);
    if (policy_use use(by.filing()); use) {
      use.note_end(guard_->core());
      use.count(wait_outcome::timed_out, false, ec);
    }
    return ec;
  }

  // Requires core().
  void feed(guard_ptr other) { guard_->feed(std::move(other)); }

  void feed_nothing() noexcept
  {
    if (guard_) guard_->feed_nothing();
  }

  /// What the bytes of an operation are to those that the stream feeds.
  template <stream_act Act>
  [[nodiscard]] peer_activity feeds() const noexcept
  {
    if (Act == stream_act::connect || !guard_ || !guard_->feeds()) return peer_activity::none;
    return Act == stream_act::read ? peer_activity::received : peer_activity::sent;
  }

  /// The cause of the latest timeout.
  [[nodiscard]] stream_timeout last_timeout() const noexcept
  {
    return guard_ ? static_cast<stream_timeout>(guard_->latest_cause()) : stream_timeout::none;
  }

private:
  [[nodiscard, gnu::noinline]] time_point from_now(duration delay) const noexcept
  {
    return deadline_after(guard_->core(), delay);
  }
  void swap(stream_deadlines& other) noexcept
  {
    guard_.swap(other.guard_);
    std::swap(expiry_, other.expiry_);
    std::swap(end_, other.end_);
    std::swap(limits_, other.limits_);
  }

  guard_ptr guard_;  ///< null until there is a deadline
  time_point expiry_ = time_point::max();
  time_point end_ = time_point::max();  ///< of all operations, by limits_.total
  stream_limits limits_;
};

}  // namespace asio_wheel::detail
