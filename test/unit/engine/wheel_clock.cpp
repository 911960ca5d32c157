// The only class that turns time points into ticks and back.
#include <detail/engine/wheel_clock.hpp>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <ctime>

using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;

namespace {

/// A clock, and a time line that is counted from its first tick.
struct origin {
  wheel_clock clock;
  bool coarse;
  time_point zero = clock.time_of(tick{0});

  explicit origin(std::chrono::nanoseconds tick_length, clock_source source = clock_source::precise)
    : clock(source, tick_length),
      coarse(source == clock_source::coarse)
  {}

  [[nodiscard]] std::uint64_t ceil(duration d) const { return count(clock.tick_ceil(zero + d)); }
  [[nodiscard]] std::uint64_t floor(duration d) const { return count(clock.tick_floor(zero + d)); }
};

/// Whether the kernel's coarse clock is behind by more than its grain, as when the host of a
/// virtual machine holds up the kernel. A clock that reads it is then behind, too.
bool kernel_is_late()
{
#if defined(__linux__)
  ::timespec grain{};
  ::timespec t{};
  ::clock_getres(CLOCK_MONOTONIC_COARSE, &grain);
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  const time_point reading{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
  return reading + 2 * std::chrono::nanoseconds{grain.tv_nsec} < clock_type::now();
#else
  return false;
#endif
}

/// Whether none of a thousand results of `read()`, each the start of a delay, is behind the clock.
template <class Read>
bool never_behind(const origin& o, Read read)
{
  for (int i = 0; i < 1000; ++i) {
    const auto before = o.clock.now();
    // Checked first: a late kernel clock may have caught up when a reading is found to be behind.
    const bool excused = o.coarse && kernel_is_late();
    if (read() < before && !excused) return false;
  }
  return true;
}

void check_start_of_delay(const origin& o)
{
  const auto grain = o.coarse ? 50ms : 0ms;
  const wheel_clock* const pointer = &o.clock;
  BOOST_TEST(never_behind(o, [&] {
    const auto read = wheel_clock::start_of_delay(pointer);
    BOOST_REQUIRE((read <= o.clock.now() + grain));
    return read;
  }));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ticks_and_time)

BOOST_AUTO_TEST_CASE(deadlines_round_up)
{
  const origin o(1ms);
  BOOST_TEST(o.ceil(0ns) == 0U);
  BOOST_TEST(o.ceil(1ns) == 1U);
  BOOST_TEST(o.ceil(1ms) == 1U);
  BOOST_TEST(o.ceil(1ms + 1ns) == 2U);
  BOOST_TEST(o.ceil(1h) == 3'600'000U);
}

BOOST_AUTO_TEST_CASE(now_rounds_down)
{
  const origin o(1ms);
  BOOST_TEST(o.floor(0ns) == 0U);
  BOOST_TEST(o.floor(1ms - 1ns) == 0U);
  BOOST_TEST(o.floor(1ms) == 1U);
  BOOST_TEST(o.floor(2ms - 1ns) == 1U);
}

BOOST_AUTO_TEST_CASE(whatever_is_due_by_tick_is_due_by_time)
{
  const origin o(37us);
  for (duration deadline = 0ns; deadline < 200us; deadline += 997ns) {
    for (duration now = 0ns; now < 200us; now += 1009ns) {
      if (o.ceil(deadline) <= o.floor(now)) BOOST_TEST((deadline <= now));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_tick_begins_where_it_says)
{
  const origin o(3ms);
  for (const std::uint64_t n : {0U, 1U, 7U, 1'000'000U}) {
    const auto begin = o.clock.time_of(tick{n});
    BOOST_TEST(count(o.clock.tick_floor(begin)) == n);
    BOOST_TEST(count(o.clock.tick_ceil(begin)) == n);
  }
}

BOOST_AUTO_TEST_CASE(time_before_the_wheel_is_tick_zero)
{
  const origin o(1ms);
  for (const auto t : {time_point::min(), time_point{} - 1ns, o.zero - 1h, o.zero - 1ns}) {
    BOOST_TEST(count(o.clock.tick_ceil(t)) == 0U);
    BOOST_TEST(count(o.clock.tick_floor(t)) == 0U);
  }
}

BOOST_AUTO_TEST_CASE(only_the_end_of_time_is_never)
{
  for (const auto tick_length : {std::chrono::nanoseconds{1us}, std::chrono::nanoseconds{24h}}) {
    const origin o(tick_length);
    BOOST_TEST((o.clock.tick_ceil(time_point::max()) == never));
    BOOST_TEST((o.clock.tick_ceil(time_point::max() - 1ns) < never));
    BOOST_TEST((o.clock.time_of(never) == time_point::max()));
    BOOST_TEST((o.clock.time_of(maybe_tick()) == time_point::max()));
  }
}

BOOST_AUTO_TEST_CASE(a_delay_counts_from_a_reading_that_is_not_behind)
{
  for (const auto source : {clock_source::precise, clock_source::coarse}) {
    const origin o(1ms, source);
    BOOST_TEST(never_behind(o, [&] { return o.clock.deadline_after(5ms) - 5ms; }));
  }
}

BOOST_AUTO_TEST_CASE(a_clock_among_others_is_read_as_if_it_were_alone)
{
  const origin precise(1ms);
  check_start_of_delay(precise);
  {
    const origin coarse(1ms, clock_source::coarse);
    check_start_of_delay(precise);
    check_start_of_delay(coarse);
  }
  check_start_of_delay(precise);
}

BOOST_AUTO_TEST_CASE(coarse_clocks_alone_are_read_coarsely)
{
  check_start_of_delay(origin(1ms, clock_source::coarse));
}

BOOST_AUTO_TEST_CASE(what_has_passed_is_told_as_by_the_clock)
{
  for (const auto source : {clock_source::precise, clock_source::coarse}) {
    const origin o(1ms, source);
    BOOST_TEST(o.clock.has_surely_passed(time_point::min()));
    BOOST_TEST(!o.clock.has_surely_passed(time_point::max()));
    const auto begin = o.clock.now();
    for (duration d = -100ms; d <= 100ms; d += 97us) {
      const auto before = o.clock.now();
      const bool excused = kernel_is_late();
      const bool has = o.clock.has_surely_passed(begin + d);
      if (begin + d <= before && !excused) BOOST_TEST(has);
      if (begin + d > o.clock.now()) BOOST_TEST(!has);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_delay_saturates_at_both_ends)
{
  for (const auto source : {clock_source::precise, clock_source::coarse}) {
    const origin o(1ms, source);
    BOOST_TEST((o.clock.deadline_after(duration::max()) == time_point::max()));
    BOOST_TEST((o.clock.deadline_after(duration::min()) < o.clock.now()));
  }
}

BOOST_AUTO_TEST_CASE(a_delay_of_few_bits_and_a_fine_unit_rounds_up)
{
  using detail::saturate;
  using std::chrono::nanoseconds;
  BOOST_TEST((saturate(std::chrono::duration<signed char, std::pico>{100}) == nanoseconds{1}));
  BOOST_TEST((saturate(std::chrono::duration<short, std::femto>{30000}) == nanoseconds{1}));
  BOOST_TEST((saturate(std::chrono::duration<short, std::femto>{-30000}) == nanoseconds{0}));
  BOOST_TEST((saturate(std::chrono::duration<unsigned char, std::pico>{254}) == nanoseconds{1}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(stopped_clock)

BOOST_AUTO_TEST_CASE(says_what_it_is_told)
{
  origin o(1ms);
  BOOST_TEST(!o.clock.is_stopped());
  for (const auto t : {o.zero, o.zero + 24h, o.zero + 1s}) {
    o.clock.stop_at(t);
    BOOST_TEST(o.clock.is_stopped());
    BOOST_TEST((o.clock.now() == t));
  }
}

BOOST_AUTO_TEST_CASE(is_where_delays_count_from_whatever_the_source)
{
  for (const auto source : {clock_source::precise, clock_source::coarse}) {
    origin o(1ms, source);
    o.clock.stop_at(o.zero + 24h);
    BOOST_TEST((o.clock.deadline_after(5ms) == o.zero + 24h + 5ms));
    BOOST_TEST((o.clock.deadline_after(-5ms) == o.zero + 24h - 5ms));
    BOOST_TEST((o.clock.deadline_after(duration::max()) == time_point::max()));
  }
}

BOOST_AUTO_TEST_CASE(tells_past_deadlines_from_those_to_come)
{
  origin o(1ms);
  o.clock.stop_at(o.zero + 10ms + 1ns);
  BOOST_TEST((o.clock.tick_for(o.zero + 3ms) == at_once));
  BOOST_TEST((o.clock.tick_for(o.zero + 10ms + 1ns) == at_once));
  BOOST_TEST(count(o.clock.tick_for(o.zero + 10ms + 2ns)) == 11U);
  BOOST_TEST(o.clock.has_surely_passed(o.zero + 10ms + 1ns));
  BOOST_TEST(!o.clock.has_surely_passed(o.zero + 10ms + 2ns));
  o.clock.stop_at(o.zero + 24h);
  BOOST_TEST(o.clock.has_surely_passed(o.zero + 24h));
}

BOOST_AUTO_TEST_CASE(runs_again_as_if_it_had_never_stopped)
{
  origin o(1ms);
  o.clock.stop_at(o.zero + 24h);
  o.clock.run();
  BOOST_TEST(!o.clock.is_stopped());
  const auto before = clock_type::now();
  const auto now = o.clock.now();
  BOOST_TEST((before <= now));
  BOOST_TEST((now <= clock_type::now()));
}

BOOST_AUTO_TEST_CASE(lets_nobody_sleep_for_long)
{
  origin o(1ms);
  o.clock.stop_at(o.zero);
  o.clock.sleep_towards(o.zero + 24h);
}

BOOST_AUTO_TEST_SUITE_END()
