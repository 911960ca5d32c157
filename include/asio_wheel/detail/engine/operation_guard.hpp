// L2 engine: operations whose deadlines share one wait.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/base/intrusive_ptr.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/engine/lazy_wait.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace asio_wheel::detail {

class operation_guard;
class shard_lock;
using guard_ptr = intrusive_ptr<operation_guard>;

/// What guards an operation. Tokens carry it through a dozen functions. It stays in registers only
/// if its destructors are all inline.
struct guarded_by {
  /// Later than the own deadline of any operation.
  static constexpr time_point latest = time_point::max() - duration{1};

  /// In place of the own deadline of an operation that has none. No guard is filed by then.
  static constexpr time_point no_deadline = time_point::min();

  /// @param t  the operation's own deadline, if the guard has none
  /// @param c  the cause of this deadline, for note_timeout()
  guarded_by(guard_ptr g, time_point t = latest, std::uint8_t c = 0) noexcept
    : guard(std::move(g)),
      until(t),
      cause(c)
  {}
  guarded_by(const guarded_by&) = default;
  guarded_by(guarded_by&&) = default;
  guarded_by& operator=(const guarded_by&) = default;
  guarded_by& operator=(guarded_by&&) = default;
  [[gnu::always_inline]] ~guarded_by() = default;

  [[nodiscard]] static bool is_of_executor() noexcept { return false; }  // as of time_limit

  guard_ptr guard;
  time_point until;
  std::uint8_t cause;
};

class policy_state;

/// What a timeout_policy allows from `start` on: its limit at that time.
struct policy_terms {
  policy_state* policy = nullptr;  ///< null: no policy
  time_point start{};
  duration allowed{};
  std::uint8_t cause = 0;  ///< of the deadlines that are the policy's: see guarded_by
};

/// Operations that share one lazy wait. Either all have the guard's deadline, which may move at any
/// time, or each has its own.
///
/// The deadline of a **guarded** operation (deadline_wait.hpp) is in the guard's list, and the
/// wheel does not know it. The wheel has the guard's own wait, filed for the earliest deadline. The
/// wait rests (shard.hpp) while the list is empty: the next operation finds it filed. When the wait
/// expires, every deadline in the list is filed as due, and from there lives as any other. When a
/// deadline begins, it goes back into the list if it has not passed.
///
/// Counted by the owner of the deadline, by each operation until it ends, by tokens, and by the
/// wheel while the wait is filed. So operations and owner may go in any order. When the owner or
/// the context goes, the operations go on unguarded, even if they were about to be cancelled: often
/// the socket goes with the owner, and Asio does not allow to cancel an operation of a socket that
/// is gone.
class ASIO_WHEEL_EXPORT operation_guard final : public lazy_wait_op,
                                                private moving_deadline,
                                                public intrusive_ref_counter<operation_guard>,
                                                public recycled<operation_guard> {
public:
  /// For operations that end at `source`, or without a source each at its own time.
  explicit operation_guard(wheel_core& c, moving_deadline* source = nullptr);
  operation_guard(const operation_guard&) = delete;
  operation_guard& operator=(const operation_guard&) = delete;
  ~operation_guard() = default;

  [[nodiscard]] shard& at() const noexcept ASIO_WHEEL_RETURNS(shard_) { return shard_; }
  [[nodiscard]] wheel_core& core() const noexcept { return *core_; }

  policy_terms terms;  ///< of operations that start; the owner guards this, not the lock

  /// Returns true if the wait is filed, and ends at `until` or before. Without the lock this is a
  /// hint.
  [[nodiscard]] bool is_filed_by(time_point until) const noexcept
  {
    return filed_for_.load(std::memory_order_relaxed) <= until;
  }

  /// Returns true if `until` has passed. Reads the clock only if the wait does not end by `until`.
  [[nodiscard]] bool has_passed(time_point until) const noexcept
  {
    return !is_filed_by(until) && detail::has_passed(*core_, until);
  }

  // For the deadline of an operation.

  /// Guards the deadline. Requires is_filed_by() its time.
  void insert(guarded_wait& deadline) noexcept ASIO_WHEEL_REQUIRES(shard_);

  /// Guards the deadline, and files the wait by its time. Returns a tick to wake up at, if any.
  [[nodiscard]] maybe_tick add(shard_lock& lock, guarded_wait& deadline) noexcept
    ASIO_WHEEL_REQUIRES(shard_);

  /// Stops guarding a deadline whose operation has ended. Call rest() afterwards.
  void erase(guarded_wait& deadline) noexcept ASIO_WHEEL_REQUIRES(shard_);

  /// The operation of a deadline that is not guarded any more has ended.
  void set_ended() noexcept { has_started_.store(false, std::memory_order_relaxed); }

  /// What becomes of a due deadline that is about to begin.
  enum class guarding : std::uint8_t {
    goes_on,   ///< it is guarded again, or dropped, as the guard is closed
    expired,   ///< it begins
    rejected,  ///< it begins, as there is no memory to file the wait for it
  };

  /// Takes back a due deadline that is about to begin, unless it has passed. If the guard is
  /// closed, drops the deadline.
  [[nodiscard]] guarding guard_again(guarded_wait& deadline, maybe_tick& refiled) noexcept;

  /// The source's deadline has moved to earlier. Returns a tick to wake up at, if any.
  [[nodiscard]] maybe_tick refile_earlier() noexcept;

  /// Lets the wait rest if there is nothing to guard, and gives up a count. Call this behind the
  /// handler of an ended operation. Most often the handler has started the next operation, and its
  /// end will do this.
  [[gnu::always_inline]] static void rest(operation_guard* counted) noexcept
  {
    if (!counted->has_started_.load(std::memory_order_relaxed)) counted->rest_if_idle();
    intrusive_ptr_release(counted);
  }

  /// Sets what operations report if their deadlines end them. The default is timed_out.
  void set_error(const error_code& ec) noexcept;

  /// Its deadline has ended an operation. Returns what the operation reports.
  error_code note_timeout(std::uint8_t cause) noexcept;

  /// The cause of the latest timeout; zero if there was none.
  [[nodiscard]] std::uint8_t latest_cause() noexcept;

  /// `source` takes the place of the present source.
  void move_to(moving_deadline& source) noexcept;

  // The operations of a stream pass signs of life on to the sources of other guards. One thread at
  // a time may use these four, as with the stream.

  /// Passes signs of life on to the source of `other`, as long as it has a source. Throws
  /// std::bad_alloc.
  void feed(guard_ptr other);
  void feed_nothing() noexcept { fed_.clear(); }
  [[nodiscard]] bool feeds() const noexcept { return !fed_.empty(); }
  void pass_on(peer_activity what) const noexcept;

  /// Guards nothing any more: running operations go on without a deadline.
  void close() noexcept;

private:
  [[nodiscard]] time_point deadline() const noexcept override;
  void set_filed_for(time_point) noexcept override;

  static void do_ask(wait_op& base, shard&, wait_request request, time_point taken_up);

  void note_own_activity(peer_activity what, time_point now) noexcept;
  [[nodiscard]] bool is_closed() noexcept;
  [[nodiscard]] tick note_filing() noexcept ASIO_WHEEL_REQUIRES(shard_);
  [[nodiscard]] maybe_tick file(shard_lock& lock) noexcept ASIO_WHEEL_REQUIRES(shard_);
  [[nodiscard]] maybe_tick refile() noexcept ASIO_WHEEL_REQUIRES(shard_);
  void end_guarded(wait_outcome outcome) noexcept;
  [[nodiscard]] bool end_some(wait_outcome outcome, std::uint64_t last) noexcept;
  [[nodiscard]] bool release_some() noexcept;
  [[nodiscard]] bool is_filed() const noexcept { return is_filed_by(guarded_by::latest); }
  void set_unfiled() noexcept override { filed_for_.store(not_filed, std::memory_order_relaxed); }
  void rest_if_idle() noexcept;
  [[nodiscard]] bool erase_own_wait() noexcept ASIO_WHEEL_REQUIRES(shard_);

  static constexpr time_point not_filed = time_point::max();

  const intrusive_ptr<wheel_core> core_;
  shard& shard_;
  /// Null: each operation has its own deadline.
  moving_deadline* source_ ASIO_WHEEL_GUARDED_BY(shard_);
  bool closed_ ASIO_WHEEL_GUARDED_BY(shard_) = false;
  error_code error_ ASIO_WHEEL_GUARDED_BY(shard_) = asio::error::timed_out;
  std::uint8_t latest_cause_ ASIO_WHEEL_GUARDED_BY(shard_) = 0;

  // Read without the lock.
  std::atomic<bool> has_started_{false};          ///< an operation, since the latest end
  std::atomic<time_point> filed_for_{not_filed};  ///< until the wait ends

  wait_list guarded_ ASIO_WHEEL_GUARDED_BY(shard_);
  std::vector<guard_ptr> fed_;
};

}  // namespace asio_wheel::detail
