// Fault: memory is refused to a wait that has left the wheel and has to go back there.
#include <asio_wheel.hpp>
#include <asio_wheel/drop_in.hpp>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "support/heap.hpp"
#include "support/outcome.hpp"
#include "support/virtual_wheel.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

/// A clock that the case sets.
struct set_clock {
  using rep = std::int64_t;
  using period = std::milli;
  using duration = std::chrono::milliseconds;
  using time_point = std::chrono::time_point<set_clock>;
  [[maybe_unused]] static constexpr bool is_steady = false;

  static time_point now() noexcept { return time_point{duration{reading.load()}}; }

  static inline std::atomic<rep> reading{0};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(refused_room)

// On its way to its handler's executor the wait has no room in the wheel, and others take that. Its
// clock, set back meanwhile, says that it is too early.
BOOST_AUTO_TEST_CASE(of_a_wait_of_another_clock_gives_back_its_place_under_the_limit)
{
  constexpr std::size_t limit = 5000;
  support::wheel_in_virtual_time c(support::with_limit(limit));
  asio::io_context elsewhere;
  support::outcome wait;
  drop_in::basic_waitable_timer<set_clock> timer(c.wheel, set_clock::now() + 10ms);
  timer.async_wait(asio::bind_executor(elsewhere, wait.recorder()));
  std::size_t others = 0;
  for (; wait.pending() && others < limit - 1; ++others) {
    set_clock::reading += 10;
    c.time.advance(1s);
    set_clock::reading -= 10;
    c.wheel.async_wait(24h, [](error_code) {});
    const support::heap_limit none(0);
    elsewhere.restart();
    elsewhere.poll();
  }
  BOOST_TEST((wait.error == wheel_errc::too_many_pending));
  BOOST_TEST(c.wheel.cancel_all() == others);
  c.time.advance(1s);
  for (std::size_t i = 0; i < limit; ++i) c.wheel.async_wait(24h, [](error_code) {});
  BOOST_TEST(c.wheel.pending() == limit);
  BOOST_TEST(c.wheel.stats().rejected == 0U);
}

// As above, of objects whose deadlines move: none says that its time has come.
BOOST_AUTO_TEST_CASE(of_a_wait_whose_deadline_has_moved_is_no_success)
{
  support::wheel_in_virtual_time c;
  asio::io_context elsewhere;
  support::outcome of_watchdog, of_heartbeat, of_interval;
  wheel_watchdog dog(c.wheel, 10ms);
  heartbeat beat(c.wheel, {.interval = 10ms, .max_missed = 1});
  wheel_interval ticks(c.wheel, 10ms);
  int refused = 0;
  for (int others = 0; refused < 10 && others < 20'000; ++others) {
    if (!of_watchdog.pending() || others == 0) {
      of_watchdog = {};
      dog.touch();
      dog.async_expired(asio::bind_executor(elsewhere, of_watchdog.recorder()));
    }
    if (!of_heartbeat.pending() || others == 0) {
      of_heartbeat = {};
      beat.async_next(asio::bind_executor(
        elsewhere, [r = of_heartbeat.recorder()](error_code ec, heartbeat_event) { r(ec); }));
    }
    if (!of_interval.pending() || others == 0) {
      of_interval = {};
      ticks.async_tick(asio::bind_executor(
        elsewhere, [r = of_interval.recorder()](error_code ec, auto) { r(ec); }));
    }
    c.time.advance(10ms);
    c.wheel.async_wait(24h, [](error_code) {});
    dog.touch();
    beat.sent();
    beat.received();
    ticks.reset();
    const support::heap_limit none(0);
    elsewhere.restart();
    elsewhere.poll();
    for (auto* o : {&of_watchdog, &of_heartbeat, &of_interval}) {
      if (o->pending()) continue;
      BOOST_TEST((o->error == wheel_errc::too_many_pending));
      ++refused;
    }
  }
  BOOST_TEST(refused > 0);
}

BOOST_AUTO_TEST_SUITE_END()
