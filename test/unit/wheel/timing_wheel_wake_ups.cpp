// What there is to wake up for, as a wheel fills and empties.
#include <detail/wheel/timing_wheel.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "support/small_wheels.hpp"

namespace {

using namespace asio_wheel::detail;

/// A century of milliseconds.
constexpr tick century{100ull * 365 * 24 * 3600 * 1000};

}  // namespace

BOOST_AUTO_TEST_SUITE(timing_wheel_wake_ups)

BOOST_AUTO_TEST_CASE(entries_far_apart_take_a_wakeup_each)
{
  timing_wheel wheel(wheel_geometry{});
  std::deque<wheel_entry> entries;
  for (tick t{1}; t < century; t = tick{count(t) * 3}) wheel.insert(entries.emplace_back(), t);
  wheel.insert(entries.emplace_back(), century);
  for (const auto& e : entries) {
    const tick due = e.due();
    BOOST_TEST((wheel.next_tick() == due));
    const maybe_tick next = wheel.advance(due);
    BOOST_TEST(wheel.pop_due() == &e);
    BOOST_TEST((next == wheel.next_tick()));
  }
  BOOST_TEST((wheel.now() == century));
}

BOOST_AUTO_TEST_CASE(erased_entries_of_a_slot_are_nothing_to_wake_up_for)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 3> entries;
  wheel.insert(entries[0], tick{26});  // these share a slot of level 1
  wheel.insert(entries[1], tick{24});
  wheel.insert(entries[2], tick{28});
  BOOST_TEST((wheel.next_tick() == tick{24}));
  BOOST_TEST(!wheel.erase(entries[1]));
  BOOST_TEST((wheel.next_tick() == tick{26}));
  BOOST_TEST(!wheel.erase(entries[0]));
  BOOST_TEST((wheel.erase(entries[2]) == tick{24}));  // the slot's first
  BOOST_TEST(!wheel.next_tick());
}

BOOST_AUTO_TEST_CASE(slot_that_becomes_large_is_to_be_woken_for_ahead_of_its_entries)
{
  timing_wheel wheel(roomy);
  std::vector<wheel_entry> entries(2 * chunk::capacity + 1);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const tick turn{100 - 100 % 16 - 16};
    const tick wake = wheel.insert(entries[i], tick{100});
    // Every chunk beyond the piece says so.
    const bool tells = i >= chunk::capacity && i % chunk::capacity == 0;
    BOOST_TEST((wake == (tells ? turn : tick{100})));
    BOOST_TEST((wheel.next_tick() == (i < chunk::capacity ? tick{100} : turn)));
  }
  // Once it was large, it stays so until it is empty.
  for (std::size_t i = 1; i < entries.size(); ++i) BOOST_TEST(!wheel.erase(entries[i]));
  BOOST_TEST((wheel.erase(entries[0]) == tick{80}));
  wheel.insert(entries[0], tick{20});  // takes the vacancy from the slot
  wheel.erase(entries[0]);
  wheel.insert(entries[0], tick{100});
  BOOST_TEST((wheel.next_tick() == tick{100}));
}

BOOST_AUTO_TEST_CASE(large_slot_has_its_turn_before_a_small_one_is_due)
{
  timing_wheel wheel(roomy);
  std::vector<wheel_entry> entries(2 * chunk::capacity);
  wheel.insert(entries[0], tick{95});
  for (std::size_t i = 1; i < entries.size(); ++i) wheel.insert(entries[i], tick{100});
  BOOST_TEST((wheel.next_tick() == tick{80}));
  BOOST_TEST((wheel.advance(tick{70}) == tick{80}));  // which hands down the small one
  BOOST_TEST((wheel.advance(tick{80}) == tick{81}));
  BOOST_TEST((wheel.advance(tick{81}) == tick{95}));
  BOOST_TEST(wheel.check(lies_before) == "");
}

BOOST_AUTO_TEST_CASE(vacant_slot_that_became_large_names_its_turn)
{
  timing_wheel wheel(roomy);
  std::vector<wheel_entry> entries(2 * chunk::capacity);
  wheel.insert(entries[0], tick{100});
  BOOST_TEST((wheel.erase(entries[0]) == tick{96}));
  for (auto& e : entries) wheel.insert(e, tick{100});
  BOOST_TEST((wheel.next_tick() == tick{80}));
  for (std::size_t i = 1; i < entries.size(); ++i) wheel.erase(entries[i]);
  BOOST_TEST((wheel.erase(entries[0]) == tick{80}));
}

BOOST_AUTO_TEST_CASE(vacant_slot_that_became_large_unasked_names_its_turn)
{
  timing_wheel wheel(roomy);
  std::vector<wheel_entry> entries(2 * chunk::capacity);
  wheel.insert(entries[0], tick{100});
  BOOST_TEST((wheel.erase(entries[0]) == tick{96}));
  wheel.insert(entries[0], tick{101});
  BOOST_TEST((wheel.wake_of(entries[0]) == tick{96}));
  for (std::size_t i = 1; i < entries.size(); ++i) wheel.insert(entries[i], tick{100});
  BOOST_TEST((wheel.wake_of(entries[0]) == tick{80}));
  for (std::size_t i = 1; i < entries.size(); ++i) wheel.erase(entries[i]);
  BOOST_TEST((wheel.erase(entries[0]) == tick{80}));
}

BOOST_AUTO_TEST_CASE(vacant_slot_is_nothing_to_wake_up_for)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 2> entries;
  wheel.insert(entries[0], tick{5});
  wheel.insert(entries[1], tick{7});
  BOOST_TEST((wheel.erase(entries[0]) == tick{5}));
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST((wheel.next_tick() == tick{7}));
  BOOST_TEST((wheel.erase(entries[1]) == tick{7}));
  BOOST_TEST((wheel.first_tick(0) == never));
  wheel.insert(entries[1], tick{7});
  BOOST_TEST((wheel.erase(entries[1]) == tick{7}));
  BOOST_TEST(!wheel.advance(tick{6}));
  BOOST_TEST(!wheel.next_tick());
}

BOOST_AUTO_TEST_CASE(vacant_slot_has_another_turn_when_now_has_moved)
{
  timing_wheel wheel(tight);
  wheel_entry e;
  wheel.advance(tick{15});
  wheel.insert(e, tick{3});
  BOOST_TEST((wheel.erase(e) == tick{15}));
  wheel.rewind(tick{5});
  wheel.insert(e, tick{3});
  BOOST_TEST((wheel.erase(e) == tick{5}));
}

BOOST_AUTO_TEST_SUITE_END()
