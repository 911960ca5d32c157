// Fault: memory is refused to a wait that has left the wheel and has to go back there.
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

BOOST_AUTO_TEST_SUITE_END()
