// A simple model of a wheel: a list of waits, each with its tick.
#pragma once

#include <asio_wheel/wheel_timer_service.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/script.hpp"

namespace model {

using duration = asio_wheel::wheel_timer_service::duration;
using asio_wheel::error_code;
using time_point = asio_wheel::wheel_timer_service::time_point;

/// `start + delay`; time_point::max() if that is later than all time points.
[[nodiscard]] inline time_point add(time_point start, duration delay)
{
  return delay < time_point::max() - start ? start + delay : time_point::max();
}

/// Counts ticks from a point before the first wait.
class time_line {
public:
  static constexpr std::uint64_t never = UINT64_MAX;

  time_line(time_point base, duration tick) : base_(base), tick_(tick) {}

  [[nodiscard]] std::uint64_t floor(time_point t) const;

  /// The tick under which a wait is filed at `now`: the first that is not before its deadline or,
  /// if the deadline has passed, the present one.
  [[nodiscard]] std::uint64_t tick_for(time_point deadline, time_point now) const;

  [[nodiscard]] time_point begin_of(std::uint64_t tick) const;

  /// How long `n` ticks last; duration::max() if that is longer.
  [[nodiscard]] duration ticks(std::uint64_t n) const;

private:
  time_point base_;
  duration tick_;
};

/// How a wait will end, as far as the model can know.
enum class fate {
  pending,    ///< expires, unless it is cancelled
  cancelled,  ///< with operation_aborted
  rejected,   ///< with too_many_pending
};

struct wait {
  int number = 0;          ///< counts the starts
  bool elsewhere = false;  ///< started by the other thread
  bool foreign = false;    ///< its handler runs on the other context
  int timer = -1;
  int watchdog = -1;
  int signal = -1;
  time_point deadline{};
  std::uint64_t tick = 0;
  script_view body{};  ///< what the handler does

  std::uint64_t latest = 0;  ///< `tick`, or the tick in which its start ended if that is later
  time_point due{};          ///< when it expires
  fate how = fate::pending;
  bool completed = false;

  /// It was due when the clock went back, and may complete although its tick has not come.
  bool was_due = false;
  /// A watchdog's wait whose deadline the clock brought forward. The wheel may notice that as late
  /// as in the tick under which it has filed the wait, at the latest `tick`.
  bool may_be_late = false;
};

/// The waits of one wheel whose handlers have not begun. Each can still be cancelled.
class pending_waits {
public:
  using list = std::vector<wait*>;

  pending_waits(time_line line, std::size_t limit) : line_(line), limit_(limit) {}

  void now_is(time_point now) { now_ = now; }

  /// The clock went back to the real present. There only waits expire that were due before it went,
  /// or whose deadlines are long past.
  void clock_went_back(time_point now);

  /// The clock has left the present, after every wait that had expired there was completed.
  void clock_came_back();

  /// Call this before each start. `pending` is what the wheel says then.
  [[nodiscard]] std::shared_ptr<wait> start(wait w, std::size_t pending);

  /// Call this after it, at `now`. If the clock runs, ticks may have passed meanwhile, and a wait
  /// for a time that has passed is filed under one of them.
  void has_started(wait& w, time_point now) const;

  [[nodiscard]] list those(const std::function<bool(const wait&)>& of_interest) const;

  /// A function that cancels these waits says that it cancelled `n`. Returns an error if it did
  /// not.
  [[nodiscard]] std::string cancelled(const list& waits, std::size_t n);

  /// The same for one that cancels the oldest.
  [[nodiscard]] std::string cancelled_one(const list& waits, std::size_t n);

  /// These waits of a watchdog have a new deadline.
  void put_off(const list& waits, time_point deadline);

  /// The operation with this deadline has ended.
  void met_by(wait& deadline);

  /// Their executor has destroyed these waits on their way.
  void destroyed(const list& waits);

  /// A handler is called. Returns an error if it should not be.
  [[nodiscard]] std::string completed(wait& w, error_code ec);

  /// Returns an error unless the end of `n` waits is undecided.
  [[nodiscard]] std::string are_pending(std::size_t n) const;

  /// Called when no handler is ready, in the other context either if `everywhere`. Says which waits
  /// should have ended by now.
  [[nodiscard]] std::string overlooked(bool everywhere) const;

  /// Returns an error if this is not what next_expiry() says when nothing is overlooked.
  [[nodiscard]] std::string next_is(std::optional<time_point> next) const;

  [[nodiscard]] const time_line& line() const { return line_; }
  [[nodiscard]] const std::vector<std::shared_ptr<wait>>& live() const { return live_; }

  // What the wheel's statistics should be, once nothing is overlooked.
  std::uint64_t accepted = 0;
  std::uint64_t expired = 0;
  std::uint64_t cancels = 0;  ///< waits that cancelling functions counted
  std::uint64_t aborted = 0;  ///< waits that ended as cancelled
  std::uint64_t met = 0;
  std::uint64_t rejected = 0;

private:
  [[nodiscard]] bool has_come(const wait& w) const { return w.tick <= line_.floor(now_); }
  void set_due(wait& w) const;
  void remove(const wait& w);
  [[nodiscard]] bool is_on_time(const wait& w) const;
  [[nodiscard]] std::string succeeded(const wait& w) const;
  [[nodiscard]] static bool precedes(const wait& a, const wait& b);

  time_line line_;
  std::size_t limit_;
  time_point now_;
  bool at_present_ = false;
  int started_ = 0;
  std::vector<std::shared_ptr<wait>> live_;
};

}  // namespace model
