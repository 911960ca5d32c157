// Fault: time goes on and the loop does not, because a signal stops the process or a handler
// blocks.
//
// Nothing is early, nothing is lost, and one pass finds all that fell due meanwhile, in order.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "support/child.hpp"
#include "support/due.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;

namespace {

/// Waits on one tick after the other, which show a gap in time.
struct gap_report {
  std::uint32_t ended = 0;
  std::uint32_t early = 0;
  std::uint32_t disordered = 0;
  std::uint32_t caught_up = 0;  ///< waits that fell due in the gap
  std::uint32_t wakeups = 0;    ///< from the first of these to the last
  duration gap{};
};

class gap_watch {
public:
  explicit gap_watch(context_with_wheel& c) : c_(c) {}

  /// Starts waits for `n` ticks in succession; calls `at_first()` when the first ends.
  template <class Function>
  void start(std::uint32_t n, duration tick, Function at_first)
  {
    const time_point begin = c_.wheel.now() + 20ms;
    for (std::uint32_t i = 0; i < n; ++i) {
      const time_point deadline = begin + i * tick;
      c_.wheel.async_wait(deadline, [this, i, deadline, at_first](error_code ec) {
        note(i, deadline, ec);
        if (i == 0) at_first();
      });
    }
  }

  [[nodiscard]] const gap_report& report() const { return report_; }

private:
  void note(std::uint32_t i, time_point deadline, error_code ec)
  {
    const time_point now = c_.wheel.now();
    if (report_.ended++ != i) ++report_.disordered;
    if (ec || now < deadline) ++report_.early;
    if (i != 0 && now - last_ > report_.gap) {
      report_.gap = now - last_;
      report_.caught_up = 0;
      until_ = now;
      wakeups_before_ = c_.wheel.stats().wakeups;
    }
    if (deadline <= until_) {
      ++report_.caught_up;
      report_.wakeups = static_cast<std::uint32_t>(c_.wheel.stats().wakeups - wakeups_before_);
    }
    last_ = now;
  }

  context_with_wheel& c_;
  gap_report report_;
  time_point last_;
  time_point until_;
  std::uint64_t wakeups_before_ = 0;
};

/// A pipe from a child to its parent.
class report_pipe {
public:
  report_pipe() { BOOST_REQUIRE(::pipe(ends_.data()) == 0); }
  report_pipe(const report_pipe&) = delete;
  report_pipe& operator=(const report_pipe&) = delete;
  ~report_pipe()
  {
    for (const int end : ends_) ::close(end);
  }

  template <class T>
  void write(const T& value) const
  {
    if (::write(ends_[1], &value, sizeof(value)) != sizeof(value)) ::_exit(2);
  }
  template <class T>
  [[nodiscard]] T read() const
  {
    T value{};
    BOOST_REQUIRE(::read(ends_[0], &value, sizeof(value)) == sizeof(value));
    return value;
  }

  /// Waits for input for up to `time`. Returns whether it came.
  [[nodiscard]] bool speaks_within(std::chrono::milliseconds time) const
  {
    ::pollfd end{ends_[0], POLLIN, 0};
    return ::poll(&end, 1, static_cast<int>(time.count())) != 0;
  }

private:
  std::array<int, 2> ends_{};
};

/// Runs waits on `n` successive milliseconds. Reports when the first ends, and after the last.
bool run_and_report(const report_pipe& pipe, std::uint32_t n, clock_source clock)
{
  wheel_options options;
  options.clock = clock;
  context_with_wheel c(options);
  gap_watch watch(c);
  watch.start(n, 1ms, [&pipe] { pipe.write('!'); });
  c.context.run();
  pipe.write(watch.report());
  return true;
}

void check(const gap_report& report, std::uint32_t ended, duration gap, std::uint32_t caught_up)
{
  BOOST_TEST(report.ended == ended);
  BOOST_TEST(report.early == 0U);
  BOOST_TEST(report.disordered == 0U);
  BOOST_TEST((report.gap >= gap));
  BOOST_TEST(report.caught_up >= caught_up);
  // Waits that fell due between the pass and the first handler need another pass.
  BOOST_TEST(report.wakeups <= 2U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stopped_process)

BOOST_AUTO_TEST_CASE(that_continues_catches_up_in_one_pass_and_nothing_is_early)
{
  constexpr std::uint32_t many = 1500;
  for (const auto clock : {clock_source::precise, clock_source::coarse}) {
    report_pipe pipe;
    support::child process([&] { return run_and_report(pipe, many, clock); });
    BOOST_TEST(pipe.read<char>() == '!');
    process.send(SIGSTOP);
    BOOST_TEST(!pipe.speaks_within(2s));
    process.send(SIGCONT);
    check(pipe.read<gap_report>(), many, 1500ms, many / 2);
    BOOST_TEST(process.went_well());
  }
}

BOOST_AUTO_TEST_CASE(again_and_again_loses_nothing)
{
  constexpr std::uint32_t many = 400;
  report_pipe pipe;
  support::child process([&] { return run_and_report(pipe, many, clock_source::precise); });
  BOOST_TEST(pipe.read<char>() == '!');
  for (int i = 0; i < 20; ++i) {
    process.send(SIGSTOP);
    static_cast<void>(pipe.speaks_within(5ms));
    process.send(SIGCONT);
    if (pipe.speaks_within(5ms)) break;
  }
  const auto report = pipe.read<gap_report>();
  BOOST_TEST(report.ended == many);
  BOOST_TEST(report.early == 0U);
  BOOST_TEST(report.disordered == 0U);
  BOOST_TEST(process.went_well());
}

BOOST_AUTO_TEST_CASE(by_a_handler_that_blocks_it_catches_up_in_one_pass)
{
  constexpr std::uint32_t many = 40;
  context_with_wheel c;
  gap_watch watch(c);
  watch.start(many, 1ms, [&] { support::spin(c.wheel, 100ms); });
  support::run_to_end(c.context);
  check(watch.report(), many, 60ms, many - 1);
}

BOOST_AUTO_TEST_SUITE_END()
