// The timers of drop_in.hpp by clocks that the case moves, and what only they have.
#include <asio_wheel/drop_in.hpp>
#include <atomic>
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/high_resolution_timer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_timer.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;
using support::wheel_in_virtual_time;

namespace {

/// A clock of milliseconds that stands still unless the case moves it.
struct set_clock {
  using rep = std::int64_t;
  using period = std::milli;
  using duration = std::chrono::milliseconds;
  using time_point = std::chrono::time_point<set_clock>;
  [[maybe_unused]] static constexpr bool is_steady = false;

  static time_point now() noexcept { return time_point{duration{reading.load()}}; }

  static inline std::atomic<rep> reading{1'000'000};
};

/// Asks for a look at the clock each second.
struct every_second {
  static set_clock::duration to_wait_duration(const set_clock::duration& d)
  {
    return std::min<set_clock::duration>(d, 1s);
  }
  static set_clock::duration to_wait_duration(const set_clock::time_point& t)
  {
    return to_wait_duration(t - set_clock::now());
  }
};

/// Asks for a look at once, always.
struct at_once_always {
  static set_clock::duration to_wait_duration(const set_clock::duration&) { return -1ms; }
};

using set_timer = drop_in::basic_waitable_timer<set_clock>;

/// The clocks of the wheel and of the timers move together.
struct two_clocks : wheel_in_virtual_time {
  void advance_both(std::chrono::milliseconds d)
  {
    set_clock::reading += d.count();
    time.advance(d);
  }
};

template <class Ours, class Asios>
constexpr bool names_the_same =
  std::is_same_v<typename Ours::clock_type, typename Asios::clock_type>&&
    std::is_same_v<typename Ours::duration, typename Asios::duration>&&
      std::is_same_v<typename Ours::time_point, typename Asios::time_point>&&
        std::is_same_v<typename Ours::traits_type, typename Asios::traits_type>&&
          std::is_same_v<typename Ours::executor_type, typename Asios::executor_type>;

static_assert(names_the_same<drop_in::steady_timer, asio::steady_timer>);
static_assert(names_the_same<drop_in::system_timer, asio::system_timer>);
static_assert(names_the_same<drop_in::high_resolution_timer, asio::high_resolution_timer>);
static_assert(names_the_same<drop_in::basic_waitable_timer<set_clock, every_second>,
                             asio::basic_waitable_timer<set_clock, every_second>>);

}  // namespace

BOOST_AUTO_TEST_SUITE(drop_in_timer)

BOOST_AUTO_TEST_CASE(ends_when_its_clock_has_come_to_the_expiry)
{
  two_clocks c;
  outcome wait;
  set_timer timer(c.wheel, 10s);
  timer.async_wait(wait.recorder());
  c.advance_both(9999ms);
  BOOST_TEST(wait.pending());
  c.advance_both(1ms);
  BOOST_TEST(wait.succeeded());
  BOOST_TEST(c.wheel.stats().expired <= 2U);  // at most once too early, by the wheel's grain
}

BOOST_AUTO_TEST_CASE(is_not_early_by_its_clock_if_that_is_slow)
{
  two_clocks c;
  outcome wait;
  set_timer timer(c.wheel, 10s);
  timer.async_wait(wait.recorder());
  c.time.advance(1min);  // by the wheel alone
  BOOST_TEST(wait.pending());
  c.advance_both(9999ms);
  BOOST_TEST(wait.pending());
  BOOST_TEST(c.wheel.pending() == 1U);
  c.advance_both(20s);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(is_not_early_by_its_clock_if_that_is_set_back)
{
  two_clocks c;
  outcome wait;
  set_timer timer(c.wheel, 10s);
  timer.async_wait(wait.recorder());
  set_clock::reading -= 3'600'000;
  c.advance_both(1h);
  BOOST_TEST(wait.pending());
  c.advance_both(10s);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(notices_within_five_minutes_that_its_clock_was_set_ahead)
{
  two_clocks c;
  outcome wait;
  set_timer timer(c.wheel, 24h);
  timer.async_wait(wait.recorder());
  c.advance_both(1s);
  set_clock::reading += 86'400'000;
  c.advance_both(4min);
  BOOST_TEST(wait.pending());
  c.advance_both(1min);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(looks_at_its_clock_as_often_as_its_wait_traits_say)
{
  two_clocks c;
  outcome wait;
  drop_in::basic_waitable_timer<set_clock, every_second> timer(c.wheel, 24h);
  timer.async_wait(wait.recorder());
  set_clock::reading += 86'400'000;
  c.time.advance(999ms);
  BOOST_TEST(wait.pending());
  c.time.advance(1ms);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(looks_each_tick_if_its_wait_traits_leave_no_time)
{
  two_clocks c;
  outcome wait;
  drop_in::basic_waitable_timer<set_clock, at_once_always> timer(c.wheel, 1h);
  timer.async_wait(wait.recorder());
  c.time.advance(10ms);
  BOOST_TEST(wait.pending());
  set_clock::reading += 3'600'000;
  c.time.advance(1ms);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(steady_clock_with_other_wait_traits_is_never_early)
{
  struct eager {
    static std::chrono::steady_clock::duration to_wait_duration(std::chrono::steady_clock::duration)
    {
      return 100us;
    }
  };
  context_with_wheel c;
  drop_in::basic_waitable_timer<std::chrono::steady_clock, eager> timer(c.context, 5ms);
  bool early = true;
  timer.async_wait(
    [&](error_code ec) { early = ec || std::chrono::steady_clock::now() < timer.expiry(); });
  support::run_to_end(c.context);
  BOOST_TEST(!early);
}

BOOST_AUTO_TEST_CASE(takes_any_duration_and_any_time)
{
  two_clocks c;
  set_timer timer(c.wheel);
  timer.expires_after(std::chrono::hours::max());
  BOOST_TEST((timer.expiry() == set_clock::time_point::max()));
  timer.expires_after(std::chrono::hours::min());
  BOOST_TEST((timer.expiry() < set_clock::now()));
  timer.expires_after(1us);  // rounded up
  BOOST_TEST((timer.expiry() == set_clock::now() + 1ms));
  timer.expires_after(std::chrono::duration<double>(0.25));
  BOOST_TEST((timer.expiry() == set_clock::now() + 250ms));
  timer.expires_at(set_clock::time_point::max());
  outcome wait;
  timer.async_wait(wait.recorder());
  c.advance_both(24h);
  BOOST_TEST(wait.pending());
  timer.expires_at(set_clock::time_point::min());
  timer.async_wait(wait.recorder());
  c.advance_both(1ms);
  BOOST_TEST(wait.calls == 2);
  BOOST_TEST(!wait.error);
}

BOOST_AUTO_TEST_CASE(cancels_one_and_all_and_counts_them)
{
  two_clocks c;
  std::array<outcome, 4> waits;
  set_timer timer(c.wheel, 10s);
  for (auto& wait : waits) timer.async_wait(wait.recorder());
  BOOST_TEST(timer.cancel_one() == 1U);
  BOOST_TEST(timer.expires_after(1s) == 3U);
  BOOST_TEST(timer.cancel() == 0U);
  BOOST_TEST(timer.cancel_one() == 0U);
  c.advance_both(1s);
  for (auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(can_be_cancelled_after_a_look_that_came_too_soon)
{
  two_clocks c;
  outcome wait;
  set_timer timer(c.wheel, 10s);
  timer.async_wait(wait.recorder());
  c.time.advance(25s);
  BOOST_TEST(timer.cancel() == 1U);
  c.time.advance(1ms);
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE(takes_its_waits_and_expiry_along)
{
  two_clocks c;
  outcome wait;
  drop_in::basic_waitable_timer<set_clock, asio::wait_traits<set_clock>,
                                asio::io_context::executor_type>
    typed(c.context, 10s);
  const auto expiry = typed.expiry();
  typed.async_wait(wait.recorder());
  set_timer timer(std::move(typed));
  BOOST_TEST((timer.expiry() == expiry));
  BOOST_TEST((typed.expiry() == set_clock::time_point{}));
  set_timer assigned(c.wheel);
  assigned = std::move(timer);
  BOOST_TEST((assigned.expiry() == expiry));
  c.advance_both(10s);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(outlives_its_context)
{
  outcome wait;
  std::optional<context_with_wheel> c(std::in_place);
  drop_in::system_timer timer(c->context, 1h);
  timer.async_wait(wait.recorder());
  c.reset();
  BOOST_TEST(wait.pending());
  BOOST_TEST(timer.cancel() == 0U);
}

BOOST_AUTO_TEST_CASE(takes_an_erased_completion_executor)
{
  context_with_wheel c;
  using clock = std::chrono::system_clock;
  drop_in::basic_waitable_timer<clock, asio::wait_traits<clock>, asio::any_completion_executor>
    timer(asio::any_completion_executor(c.context.get_executor()), 1ms);
  outcome wait;
  timer.async_wait(wait.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(blocks_until_its_clock_has_come_to_the_expiry)
{
  context_with_wheel c;
  drop_in::system_timer timer(c.context, 5ms);
  timer.wait();
  BOOST_TEST((std::chrono::system_clock::now() >= timer.expiry()));
  error_code ec = asio::error::eof;
  timer.wait(ec);
  BOOST_TEST(!ec);
}

template <class Timer>
concept has_the_old_names = requires(Timer& t, const Timer& c, typename Timer::duration d,
                                     typename Timer::time_point p, error_code& ec)
{
  t.cancel(ec);
  t.cancel_one(ec);
  t.expires_at(p, ec);
  t.expires_from_now(d);
  t.expires_from_now(d, ec);
  c.expires_at();
  c.expires_from_now();
};

static_assert(has_the_old_names<drop_in::steady_timer> == has_the_old_names<asio::steady_timer>);
static_assert(has_the_old_names<drop_in::system_timer> == has_the_old_names<asio::system_timer>);

template <class Timer>
void check_old_names(wheel_timer_service& wheel)
{
  if constexpr (has_the_old_names<Timer>) {
    Timer timer(wheel);
    outcome wait;
    error_code ec = asio::error::eof;
    BOOST_TEST(timer.expires_from_now(1h) == 0U);
    BOOST_TEST((timer.expires_from_now() > 59min));
    BOOST_TEST((timer.expires_at() == timer.expiry()));
    for (int i = 0; i < 4; ++i) timer.async_wait(wait.recorder());
    BOOST_TEST(timer.cancel_one(ec) == 1U);
    BOOST_TEST(!ec);
    BOOST_TEST(timer.cancel(ec) == 3U);
    timer.async_wait(wait.recorder());
    BOOST_TEST(timer.expires_from_now(2h, ec) == 1U);
    timer.async_wait(wait.recorder());
    BOOST_TEST(timer.expires_at(Timer::time_point::min(), ec) == 1U);
    BOOST_TEST((timer.expires_from_now() < 0h));
    support::run_to_end(static_cast<asio::io_context&>(wheel.context()));
    BOOST_TEST(wait.calls == 6);
  }
}

BOOST_AUTO_TEST_CASE(has_the_old_names_where_asio_has_them)
{
  context_with_wheel c;
  check_old_names<drop_in::steady_timer>(c.wheel);
  check_old_names<drop_in::system_timer>(c.wheel);
}

BOOST_AUTO_TEST_SUITE_END()
