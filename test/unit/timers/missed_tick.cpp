// When the tick after a late one is due, for each of the three rules.
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <stdexcept>
#include <string>

#include "asio_wheel/missed_tick.hpp"

using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;

namespace {

constexpr std::array all_rules{missed_tick::burst, missed_tick::delay, missed_tick::skip};
constexpr time_point start{1000s};

/// The tick after the one at `start`, with a slack of 5 ms, as the time since start.
duration next(missed_tick rule, duration period, duration late)
{
  return tick_after(start, period, start + late, rule, 5ms) - start;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ticks_missed)

BOOST_AUTO_TEST_CASE(a_punctual_tick_is_followed_one_period_later_by_every_rule)
{
  for (const auto rule : all_rules) {
    BOOST_TEST((next(rule, 10ms, 0ms) == 10ms));
    BOOST_TEST((next(rule, 10ms, 1ns) == 10ms));
    BOOST_TEST((next(rule, 10ms, 5ms) == 10ms));
  }
}

BOOST_AUTO_TEST_CASE(burst_knows_no_delay)
{
  BOOST_TEST((next(missed_tick::burst, 10ms, 37ms) == 10ms));
  BOOST_TEST((next(missed_tick::burst, 1ms, 1h) == 1ms));
}

BOOST_AUTO_TEST_CASE(delay_counts_from_now_once_it_is_late_beyond_the_slack)
{
  BOOST_TEST((next(missed_tick::delay, 10ms, 5ms + 1ns) == 15ms + 1ns));
  BOOST_TEST((next(missed_tick::delay, 10ms, 37ms) == 47ms));
}

BOOST_AUTO_TEST_CASE(delay_counts_from_now_once_the_next_tick_is_due_too)
{
  BOOST_TEST((next(missed_tick::delay, 2ms, 2ms - 1ns) == 2ms));
  BOOST_TEST((next(missed_tick::delay, 2ms, 2ms) == 4ms));
  BOOST_TEST((next(missed_tick::delay, 2ms, 3ms) == 5ms));
}

BOOST_AUTO_TEST_CASE(skip_goes_to_the_next_multiple_ahead)
{
  BOOST_TEST((next(missed_tick::skip, 10ms, 9ms) == 10ms));
  BOOST_TEST((next(missed_tick::skip, 10ms, 10ms) == 20ms));
  BOOST_TEST((next(missed_tick::skip, 10ms, 37ms) == 40ms));
  BOOST_TEST((next(missed_tick::skip, 1ms, 1h + 300us) == 1h + 1ms));
}

BOOST_AUTO_TEST_CASE(the_ends_of_time_are_not_passed)
{
  for (const auto rule : all_rules) {
    BOOST_TEST((next(rule, duration::max(), 0ms) == time_point::max() - start));
    BOOST_TEST((next(rule, duration::max(), 1h) == time_point::max() - start));
  }
  const auto from_the_beginning = [](missed_tick rule) {
    return tick_after(time_point::min(), 1h, start, rule, 5ms);
  };
  BOOST_TEST((from_the_beginning(missed_tick::burst) == time_point::min() + 1h));
  BOOST_TEST((from_the_beginning(missed_tick::delay) == start + 1h));
  BOOST_TEST((from_the_beginning(missed_tick::skip) > start));
  BOOST_TEST((from_the_beginning(missed_tick::skip) <= start + 1h));
}

BOOST_AUTO_TEST_CASE(what_must_be_positive_is_refused_by_name_and_value)
{
  BOOST_CHECK_NO_THROW(require_positive("period", 1ns));
  BOOST_CHECK_EXCEPTION(require_positive("period", -5ns), std::invalid_argument, [](const auto& e) {
    return e.what() == std::string("period is -5ns; it must be more than 0ns");
  });
  BOOST_CHECK_THROW(require_positive("period", 0ns), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
