// L2 service: a deadline that is part of an operation's state, and who of the two goes last.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/embedded_signal.hpp>
#include <asio_wheel/service/shard_set.hpp>
#include <asio_wheel/service/wait_op.hpp>
#include <asio_wheel/service/wheel_clock.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstdint>

namespace asio_wheel {

class deadline_op;

/// How an operation that its deadline cut short says so.
enum class deadline_report : std::uint8_t {
  aborted,    ///< as if cancelled: operation_aborted
  timed_out,  ///< asio::error::timed_out
};

/// Throws std::logic_error: where to keep a deadline cannot be told.
[[noreturn]] ASIO_WHEEL_EXPORT void fail_without_wheel();

/// What the end of an operation leaves to be done behind its handler: telling the driver that
/// there may be nothing to wake up for. By then the next operation has often started, and there
/// is.
class settlement {
public:
  settlement() = default;
  settlement(const settlement&) = delete;
  settlement& operator=(const settlement&) = delete;
  ~settlement()
  {
    if (shard_) shard_->tell_driver();
  }

  void owe(shard& s) noexcept { shard_ = &s; }

private:
  shard* shard_ = nullptr;
};

/// What an operation with a deadline leaves in the cancellation slot of its handler: the way to
/// the operation, for as long as it lasts. Either may go first, as with a cancel_link.
class ASIO_WHEEL_EXPORT deadline_link {
public:
  explicit deadline_link(deadline_op& op) noexcept;
  deadline_link(const deadline_link&) = delete;
  deadline_link& operator=(const deadline_link&) = delete;
  ~deadline_link();

protected:
  /// The operation, kept until its release() for a cancellation of `type` from outside; nullptr
  /// if it has ended.
  [[nodiscard]] deadline_op* hold(asio::cancellation_type_t type) noexcept;

private:
  friend class deadline_op;

  std::atomic<shard*> shard_;
  deadline_op* op_;
};

/// Base of the state of an operation with a deadline.
///
/// The state outlives the operation's completion for as long as it has a **holder**: the function
/// that initiates the operation, and after it the deadline, from being filed until it is withdrawn
/// or its firing is over; and whoever is passing on a cancellation from outside. An end of the
/// operation that finds none has the state to itself. Otherwise the end leaves the result behind,
/// and the last holder to go completes the operation. The lock of the deadline's shard, which
/// filing and withdrawing take anyway, decides who that is.
///
/// The deadline is filed when the operation has been initiated: there is something to cancel then.
/// Its shard exists as long as it is filed; from when it is not, the state holds on to the shards.
class ASIO_WHEEL_EXPORT deadline_op : public wait_op {
public:
  /// Makes sure of a wake-up, and returns what the deadline is to be filed under. Throw what
  /// posting throws.
  [[nodiscard]] static tick prepare(shard_set& shards, duration delay);
  [[nodiscard]] static tick prepare(shard_set& shards, time_point deadline);

  /// What the operation proper listens to.
  [[nodiscard]] embedded_signal& signal() noexcept { return signal_; }

  /// Gives up a hold. Whether the operation has ended, and the state is now the caller's.
  [[nodiscard]] bool release() noexcept;

protected:
  /// What is asked of the deadline when it comes.
  struct terms {
    asio::cancellation_type_t type;
    deadline_report report;
  };

  deadline_op(complete_fn f, shard_set& shards, tick when, terms t) noexcept;
  ~deadline_op() = default;

  [[nodiscard]] shard_set& shards() const noexcept { return home_->set(); }
  [[nodiscard]] asio::cancellation_type_t type() const noexcept { return terms_.type; }

  /// Files the deadline, unless the operation has ended, or there is none to file. False if the
  /// state is now the caller's, as with release().
  ///
  /// A deadline that is refused fires at once, as one: so does one there is no memory for.
  [[nodiscard, gnu::flatten]] bool start(tick when) noexcept;

  /// For the end of the operation. Takes the deadline out, if it is pending. Whether that leaves
  /// the state to the caller.
  [[nodiscard]] bool withdraw(settlement& later) noexcept;

  /// The same once the result is in the state: if others hold on, they are to see to the rest.
  [[nodiscard]] bool leave(settlement& later) noexcept;

  /// To be called first when the wheel is done with the deadline, however that came.
  void hold_shards() noexcept { shards_ = &shards(); }

  /// Makes the deadline's end the cause of the cancellation, if there is none yet. Whether the
  /// operation goes on, so that there is anything to cancel.
  [[nodiscard]] bool begin_firing(wait_outcome outcome) noexcept;

  /// What to report in place of operation_aborted; success if nothing.
  [[nodiscard]] error_code verdict() const noexcept;
  [[nodiscard]] bool has_verdict() const noexcept
  {
    return cause_ == cause::refusal ||
           (cause_ == cause::deadline && terms_.report == deadline_report::timed_out);
  }

  /// Keeps the shards while the state is being freed.
  [[nodiscard]] boost::intrusive_ptr<shard_set> take_shards() noexcept
  {
    return std::move(shards_);
  }

private:
  friend class deadline_link;

  /// Of the first cancellation that the operation saw.
  enum class cause : std::uint8_t {
    none,
    deadline,
    refusal,  ///< by the wheel, of the deadline
    other,    ///< the slot of the handler, or cancel_all()
  };

  // All of these require the lock.
  [[nodiscard]] bool is_pending() const noexcept;
  [[nodiscard, gnu::flatten]] bool end(bool for_good, settlement& later) noexcept;
  void cut_link() noexcept;

  shard* const home_;
  deadline_link* link_ = nullptr;  ///< null: the handler has no slot that is connected
  boost::intrusive_ptr<shard_set> shards_;

  const terms terms_;
  std::uint8_t holders_ = 1;  ///< the initiating function
  bool filed_ = false;        ///< and not withdrawn
  bool ended_ = false;        ///< the last holder is to see to the rest
  cause cause_ = cause::none;

  embedded_signal signal_;
};

}  // namespace asio_wheel
