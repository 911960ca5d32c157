// How options are rounded, and how bad ones are reported.
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <stdexcept>
#include <string>

#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;

namespace {

/// What make_wheel throws for these options; empty if it accepts them.
std::string complaint(const wheel_options& options)
{
  asio::io_context context;
  try {
    make_wheel(context, options);
    return {};
  } catch (const std::invalid_argument& e) {
    BOOST_TEST(!asio::has_service<wheel_timer_service>(context));
    return e.what();
  }
}

bool says(const std::string& message, const std::string& part)
{
  return message.find(part) != std::string::npos;
}

wheel_options with_slots(std::size_t slots)
{
  wheel_options options;
  options.slots = slots;
  return options;
}

wheel_options with_shards(std::size_t shards)
{
  wheel_options options;
  options.shards = shards;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(options)

BOOST_AUTO_TEST_CASE(by_default_are_a_millisecond_tick_and_no_limit)
{
  const wheel_options options;
  BOOST_TEST((options.tick == 1ms));
  BOOST_TEST(options.slots == 1024U);
  BOOST_TEST(options.shards == 0U);
  BOOST_TEST(options.max_pending == 0U);
  BOOST_TEST((options.clock == clock_source::precise));
}

BOOST_AUTO_TEST_CASE(a_bad_tick_is_named_with_its_value_and_range)
{
  for (const auto tick : {-1ns, 0ns, 999ns}) {
    const auto message = complaint(support::with_tick(tick));
    BOOST_TEST_CONTEXT(message)
    {
      BOOST_TEST(says(message, "tick"));
      BOOST_TEST(says(message, std::to_string(tick.count())));
      BOOST_TEST(says(message, "1us"));
      BOOST_TEST(says(message, "24h"));
    }
  }
  BOOST_TEST(says(complaint(support::with_tick(24h + 1ns)), "24h"));
}

BOOST_AUTO_TEST_CASE(bad_slots_are_named_with_their_value_and_range)
{
  for (const std::size_t slots : {0U, 65537U, 4000000000U}) {
    const auto message = complaint(with_slots(slots));
    BOOST_TEST_CONTEXT(message)
    {
      BOOST_TEST(says(message, "slots"));
      BOOST_TEST(says(message, std::to_string(slots)));
      BOOST_TEST(says(message, "from 1 to 65536"));
    }
  }
}

BOOST_AUTO_TEST_CASE(bad_shards_are_named_with_their_value_and_range)
{
  for (const std::size_t shards : {65U, 4000000000U}) {
    const auto message = complaint(with_shards(shards));
    BOOST_TEST_CONTEXT(message)
    {
      BOOST_TEST(says(message, "shards"));
      BOOST_TEST(says(message, std::to_string(shards)));
      BOOST_TEST(says(message, "64"));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_clock_is_named_with_its_value)
{
  wheel_options options;
  options.clock = static_cast<clock_source>(7);
  const auto message = complaint(options);
  BOOST_TEST(says(message, "clock"));
  BOOST_TEST(says(message, "7"));
}

BOOST_AUTO_TEST_CASE(the_ends_of_each_range_are_in_it)
{
  for (const std::chrono::nanoseconds tick :
       {std::chrono::nanoseconds{1us}, std::chrono::nanoseconds{24h}}) {
    BOOST_TEST(complaint(support::with_tick(tick)) == "");
  }
  for (const std::size_t slots : {1U, 65536U}) BOOST_TEST(complaint(with_slots(slots)) == "");
  for (const std::size_t shards : {0U, 1U, 64U}) BOOST_TEST(complaint(with_shards(shards)) == "");
}

BOOST_AUTO_TEST_CASE(a_wheel_tells_them_rounded_and_filled_in)
{
  wheel_options options;
  options.tick = 3ms;
  options.slots = 1000;
  options.shards = 3;
  options.max_pending = 17;
  options.clock = clock_source::coarse;
  const support::context_with_wheel c(options);
  BOOST_TEST((c.wheel.options().tick == 3ms));
  BOOST_TEST(c.wheel.options().slots == 1024U);
  BOOST_TEST(c.wheel.options().shards == 4U);
  BOOST_TEST(c.wheel.options().max_pending == 17U);
  BOOST_TEST((c.wheel.options().clock == clock_source::coarse));
}

BOOST_AUTO_TEST_CASE(shards_are_chosen_by_the_hardware_if_nobody_else_does)
{
  const support::context_with_wheel c;
  const auto shards = c.wheel.options().shards;
  BOOST_TEST(shards >= 1U);
  BOOST_TEST((shards & (shards - 1)) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
