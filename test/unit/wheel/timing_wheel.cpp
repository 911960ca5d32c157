// What the wheel promises beyond the model: cascades, far deadlines, failed allocations.
#include <asio_wheel/wheel/timing_wheel.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace {

using namespace asio_wheel;

/// Two levels of eight slots: corners that a large wheel hides.
constexpr wheel_geometry small{.slot_bits = 3, .fan_bits = 3, .levels = 2};

std::vector<const wheel_entry*> pop_all(timing_wheel& wheel)
{
  std::vector<const wheel_entry*> popped;
  while (const wheel_entry* e = wheel.pop_due()) popped.push_back(e);
  return popped;
}

/// A century of milliseconds.
constexpr tick century{100ull * 365 * 24 * 3600 * 1000};

}  // namespace

BOOST_AUTO_TEST_SUITE(timing_wheel_itself)

BOOST_AUTO_TEST_CASE(entries_of_one_tick_stay_in_order_through_a_cascade)
{
  timing_wheel wheel(small);
  std::array<wheel_entry, 3> entries;
  wheel.insert(entries[0], tick{20});  // on level 1
  wheel.insert(entries[1], tick{20});
  wheel.advance(tick{17});  // which cascades: the next is filed on level 0
  wheel.insert(entries[2], tick{20});
  wheel.advance(tick{20});
  BOOST_TEST(
    (pop_all(wheel) == std::vector<const wheel_entry*>{&entries[0], &entries[1], &entries[2]}));
  BOOST_TEST(wheel.cascaded() == 2u);
}

BOOST_AUTO_TEST_CASE(entries_of_many_ticks_leave_in_tick_order_after_one_jump)
{
  timing_wheel wheel(small);
  std::array<wheel_entry, 4> entries;
  wheel.insert(entries[3], tick{1000});  // beyond the range of the levels
  wheel.insert(entries[2], tick{63});
  wheel.insert(entries[0], tick{1});
  wheel.insert(entries[1], tick{8});
  wheel.advance(tick{100'000});
  BOOST_TEST((pop_all(wheel) ==
              std::vector<const wheel_entry*>{&entries[0], &entries[1], &entries[2], &entries[3]}));
}

BOOST_AUTO_TEST_CASE(entry_beyond_the_range_is_refiled_and_neither_lost_nor_early)
{
  timing_wheel wheel(small);
  wheel_entry e;
  wheel.insert(e, tick{1'000'000});
  tick wake{};
  while ((wake = wheel.next_tick()) < tick{1'000'000}) {
    wheel.advance(wake);
    BOOST_TEST(!wheel.has_due());
    BOOST_TEST(wheel.check() == "");
  }
  wheel.advance(tick{999'999});
  BOOST_TEST(wheel.pop_due() == nullptr);
  wheel.advance(tick{1'000'000});
  BOOST_TEST(wheel.pop_due() == &e);
}

BOOST_AUTO_TEST_CASE(century_of_milliseconds_takes_a_wakeup_per_level)
{
  timing_wheel wheel;
  wheel_entry e;
  wheel.insert(e, century);
  int wakeups = 0;
  for (; !wheel.has_due(); ++wakeups) wheel.advance(wheel.next_tick());
  BOOST_TEST((wheel.now() == century));
  BOOST_TEST(wakeups <= 8);
  BOOST_TEST(wheel.pop_due() == &e);
}

BOOST_AUTO_TEST_CASE(last_tick_of_all_can_be_reached)
{
  constexpr tick last{count(never) - 1};
  timing_wheel wheel;
  wheel_entry e;
  wheel.insert(e, last);
  wheel.advance(tick{count(last) - 1});
  BOOST_TEST(wheel.pop_due() == nullptr);
  BOOST_TEST(wheel.check() == "");
  wheel.advance(last);
  BOOST_TEST(wheel.pop_due() == &e);
}

BOOST_AUTO_TEST_CASE(never_is_not_due_at_the_end_of_time_and_can_be_erased)
{
  timing_wheel wheel;
  wheel_entry e;
  wheel.insert(e, never);
  BOOST_TEST((wheel.next_tick() == never));
  wheel.advance(tick{count(never) - 1});
  BOOST_TEST(!wheel.has_due());
  BOOST_TEST(!wheel.empty());
  BOOST_TEST((wheel.erase(e) == never));
  BOOST_TEST(wheel.empty());
}

BOOST_AUTO_TEST_CASE(overdue_entry_is_due_in_the_next_advance_ahead_of_the_others)
{
  timing_wheel wheel(small);
  std::array<wheel_entry, 2> entries;
  wheel.advance(tick{10});
  wheel.insert(entries[1], tick{11});
  wheel.insert(entries[0], tick{3});
  BOOST_TEST(!wheel.is_due(entries[0]));  // it can still be erased
  BOOST_TEST((wheel.next_tick() == tick{10}));
  wheel.advance(tick{11});
  BOOST_TEST((pop_all(wheel) == std::vector<const wheel_entry*>{&entries[0], &entries[1]}));
}

BOOST_AUTO_TEST_CASE(erased_entries_leave_no_memory_taken)
{
  timing_wheel wheel(small);
  std::vector<wheel_entry> entries(1000);
  for (int round = 0; round < 3; ++round) {
    for (auto& e : entries) wheel.insert(e, tick{count(wheel.now()) + 5});
    for (auto& e : entries) wheel.erase(e);
    BOOST_TEST(wheel.check() == "");  // which counts the chunks
    BOOST_TEST(wheel.empty());
  }
}

BOOST_AUTO_TEST_CASE(entry_that_is_filed_as_another_expires_is_not_lost)
{
  timing_wheel wheel(small);
  std::array<wheel_entry, 2> entries;
  wheel.insert(entries[0], tick{9});
  wheel.advance(tick{9});
  BOOST_TEST(wheel.pop_due() == &entries[0]);
  wheel.insert(entries[0], tick{18});
  wheel.insert(entries[1], tick{9});
  wheel.advance(tick{18});
  BOOST_TEST((pop_all(wheel) == std::vector<const wheel_entry*>{&entries[1], &entries[0]}));
}

BOOST_AUTO_TEST_CASE(rewind_leaves_entries_their_ticks_and_their_order)
{
  timing_wheel wheel(small);
  std::array<wheel_entry, 4> entries;
  wheel.insert(entries[1], tick{1003});
  wheel.insert(entries[3], tick{5000});
  wheel.advance(tick{1001});
  wheel.insert(entries[2], tick{1003});
  wheel.rewind(tick{2});
  BOOST_TEST((wheel.now() == tick{2}));
  BOOST_TEST(wheel.check() == "");
  wheel.insert(entries[0], tick{3});
  wheel.advance(tick{3});
  BOOST_TEST(wheel.pop_due() == &entries[0]);
  wheel.advance(tick{1002});
  BOOST_TEST(wheel.pop_due() == nullptr);
  wheel.advance(tick{5000});
  BOOST_TEST(
    (pop_all(wheel) == std::vector<const wheel_entry*>{&entries[1], &entries[2], &entries[3]}));
}

BOOST_AUTO_TEST_CASE(rewind_leaves_due_entries_due)
{
  timing_wheel wheel(small);
  std::array<wheel_entry, 3> entries;
  wheel.insert(entries[0], tick{10});
  wheel.insert(entries[1], tick{20});
  wheel.advance(tick{100});
  BOOST_TEST(wheel.pop_due() == &entries[0]);
  wheel.insert(entries[2], tick{50});  // past, and not due before the next advance()
  wheel.rewind(tick{5});
  BOOST_TEST(wheel.is_due(entries[1]));
  BOOST_TEST(!wheel.is_due(entries[2]));
  BOOST_TEST((wheel.next_tick() == tick{5}));
  wheel.advance(tick{5});
  BOOST_TEST((pop_all(wheel) == std::vector<const wheel_entry*>{&entries[1], &entries[2]}));
  BOOST_TEST(wheel.check() == "");
}

BOOST_AUTO_TEST_CASE(rewind_keeps_what_never_comes_and_what_lies_beyond_the_levels)
{
  timing_wheel wheel(small);
  std::array<wheel_entry, 2> entries;
  wheel.advance(tick{1'000'000});
  wheel.insert(entries[0], never);
  wheel.insert(entries[1], tick{1'000'001});  // at hand now, and far away soon
  wheel.rewind(tick{});
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST(wheel.size() == 2u);
  wheel.advance(tick{1'000'000});
  BOOST_TEST(!wheel.has_due());
  wheel.advance(tick{1'000'001});
  BOOST_TEST(wheel.pop_due() == &entries[1]);
  wheel.erase(entries[0]);
  BOOST_TEST(wheel.empty());
}

BOOST_AUTO_TEST_CASE(geometry_out_of_range_is_refused)
{
  const auto make = [](unsigned slot_bits, unsigned fan_bits, unsigned levels) {
    return timing_wheel({.slot_bits = slot_bits, .fan_bits = fan_bits, .levels = levels});
  };
  BOOST_CHECK_THROW(make(3, 0, 2), std::invalid_argument);
  BOOST_CHECK_THROW(make(3, 4, 2), std::invalid_argument);
  BOOST_CHECK_THROW(make(17, 8, 2), std::invalid_argument);
  BOOST_CHECK_THROW(make(3, 3, 65), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
