// Tests beside the model: cascades, far deadlines, drains, and what check() finds.
#include <detail/wheel/timing_wheel.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/resident.hpp"
#include "support/small_wheels.hpp"

namespace {

using namespace asio_wheel;
using namespace asio_wheel::detail;

std::vector<const wheel_entry*> pop_all(timing_wheel& wheel)
{
  std::vector<const wheel_entry*> popped;
  while (const wheel_entry* e = wheel.pop_due()) popped.push_back(e);
  return popped;
}

std::vector<const wheel_entry*> pop_all_drained(timing_wheel& wheel)
{
  std::vector<const wheel_entry*> popped;
  while (const wheel_entry* e = wheel.pop_drained()) popped.push_back(e);
  return popped;
}

/// The entries with these indices, in this order.
template <class Entries>
std::vector<const wheel_entry*> those(const Entries& entries, std::initializer_list<int> indices)
{
  std::vector<const wheel_entry*> result;
  for (const int i : indices) result.push_back(&entries[static_cast<std::size_t>(i)]);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(timing_wheel_itself)

BOOST_AUTO_TEST_CASE(entries_of_one_tick_stay_in_order_through_a_cascade)
{
  timing_wheel wheel(tight);
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
  timing_wheel wheel(tight);
  std::array<wheel_entry, 4> entries;
  wheel.insert(entries[3], tick{1000});  // on level 3
  wheel.insert(entries[2], tick{63});
  wheel.insert(entries[0], tick{1});
  wheel.insert(entries[1], tick{8});
  wheel.advance(tick{100'000});
  BOOST_TEST((pop_all(wheel) ==
              std::vector<const wheel_entry*>{&entries[0], &entries[1], &entries[2], &entries[3]}));
}

BOOST_AUTO_TEST_CASE(last_tick_of_all_can_be_reached)
{
  constexpr tick last{count(never) - 1};
  timing_wheel wheel(wheel_geometry{});
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
  timing_wheel wheel(wheel_geometry{});
  wheel_entry e;
  wheel.insert(e, never);
  BOOST_TEST((wheel.next_tick() == never));
  wheel.advance(tick{count(never) - 1});
  BOOST_TEST(!wheel.has_due());
  BOOST_TEST(bool(wheel.next_tick()));
  BOOST_TEST((wheel.erase(e) == never));
  BOOST_TEST(!wheel.next_tick());
}

BOOST_AUTO_TEST_CASE(overdue_entry_is_due_in_the_next_advance_ahead_of_the_others)
{
  timing_wheel wheel(tight);
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
  timing_wheel wheel(tight);
  std::vector<wheel_entry> entries(1000);
  for (int round = 0; round < 3; ++round) {
    for (auto& e : entries) wheel.insert(e, tick{count(wheel.now()) + 5});
    for (auto& e : entries) wheel.erase(e);
    BOOST_TEST(wheel.check() == "");  // which counts the chunks
    BOOST_TEST(!wheel.next_tick());
  }
}

BOOST_AUTO_TEST_CASE(vacant_slot_is_used_again)
{
  timing_wheel wheel(tight);
  wheel_entry e;
  const void* first = nullptr;
  for (int round = 0; round < 100; ++round) {  // more than a chunk has cells
    wheel.insert(e, tick{60});
    if (!first) first = e.cell();
    BOOST_TEST(e.cell() == first);
    BOOST_TEST(bool(wheel.erase(e)));
    BOOST_TEST(wheel.check() == "");
  }
  wheel.insert(e, tick{60});
  wheel.advance(tick{59});
  BOOST_TEST(!wheel.has_due());
  wheel.advance(tick{60});
  BOOST_TEST(wheel.pop_due() == &e);
}

BOOST_AUTO_TEST_CASE(entry_that_is_filed_as_another_expires_is_not_lost)
{
  timing_wheel wheel(tight);
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
  timing_wheel wheel(tight);
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
  timing_wheel wheel(tight);
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

BOOST_AUTO_TEST_CASE(rewind_keeps_what_never_comes_and_what_is_far_away)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 2> entries;
  wheel.advance(tick{1'000'000});
  wheel.insert(entries[0], never);
  wheel.insert(entries[1], tick{1'000'001});  // on level 0 now, and on level 6 soon
  wheel.rewind(tick{});
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST(wheel.size() == 2u);
  wheel.advance(tick{1'000'000});
  BOOST_TEST(!wheel.has_due());
  wheel.advance(tick{1'000'001});
  BOOST_TEST(wheel.pop_due() == &entries[1]);
  wheel.erase(entries[0]);
  BOOST_TEST(!wheel.next_tick());
}

BOOST_AUTO_TEST_CASE(chunk_that_loses_all_its_due_entries_goes_back_to_the_pool)
{
  constexpr std::size_t n = chunk::capacity;
  timing_wheel wheel(tight);
  std::vector<wheel_entry> entries(3 * n);
  for (auto& e : entries) wheel.insert(e, tick{5});
  wheel.advance(tick{5});
  BOOST_TEST(wheel.pop_due() == &entries[0]);
  for (std::size_t i = 2 * n; i-- > n;) wheel.erase(entries[i]);  // the middle chunk
  BOOST_TEST(wheel.check() == "");                                // which counts the chunks
  BOOST_TEST(wheel.size() == 2 * n - 1);
  BOOST_TEST(wheel.front_due() == &entries[1]);
  for (std::size_t i = 1; i < n; ++i) wheel.erase(entries[i]);  // the rest of the first one
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST(wheel.front_due() == &entries[2 * n]);
  for (std::size_t i = 2 * n; i < 3 * n; ++i) wheel.erase(entries[i]);
  BOOST_TEST(!wheel.has_due());
  BOOST_TEST(wheel.size() == 0u);
  BOOST_TEST(wheel.check() == "");
}

BOOST_AUTO_TEST_CASE(chunk_that_is_popped_and_erased_in_turns_leads_to_the_next)
{
  constexpr std::size_t n = chunk::capacity;
  timing_wheel wheel(tight);
  std::vector<wheel_entry> entries(2 * n);
  for (auto& e : entries) wheel.insert(e, tick{5});
  wheel.advance(tick{5});
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(wheel.pop_due() == &entries[i]);
  wheel.erase(entries[3]);
  BOOST_TEST(wheel.pop_due() == &entries[4]);
  for (std::size_t i = 5; i < n; ++i) wheel.erase(entries[i]);
  BOOST_TEST(wheel.check() == "");
  for (std::size_t i = n; i < 2 * n; ++i) BOOST_TEST(wheel.pop_due() == &entries[i]);
  BOOST_TEST(wheel.pop_due() == nullptr);
}

BOOST_AUTO_TEST_CASE(drain_takes_due_overdue_near_far_and_never_entries_in_this_order)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 8> entries;
  wheel.insert(entries[7], never);
  wheel.insert(entries[6], tick{1'000'000});  // on level 6
  wheel.insert(entries[5], tick{50});         // on level 1
  wheel.insert(entries[0], tick{9});
  wheel.insert(entries[1], tick{10});
  wheel.advance(tick{10});
  wheel.insert(entries[4], tick{12});
  wheel.insert(entries[3], tick{11});
  wheel.insert(entries[2], tick{3});  // past, and not due before the next advance()
  wheel.drain();
  BOOST_TEST(!wheel.next_tick());
  BOOST_TEST(!wheel.has_due());
  BOOST_TEST(wheel.has_drained());
  BOOST_TEST(wheel.size() == 8u);
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST((pop_all_drained(wheel) == those(entries, {0, 1, 2, 3, 4, 5, 6, 7})));
  BOOST_TEST(!wheel.has_drained());
  BOOST_TEST(wheel.size() == 0u);
}

BOOST_AUTO_TEST_CASE(draining_leaves_every_entry_in_its_cell)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 5> entries;
  const std::array<tick, 5> ticks{tick{1}, tick{2}, tick{40}, tick{5000}, never};
  for (std::size_t i = 0; i < entries.size(); ++i) wheel.insert(entries[i], ticks[i]);
  wheel.advance(tick{1});
  std::vector<const void*> cells;
  for (const auto& e : entries) cells.push_back(e.cell());
  wheel.drain();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    BOOST_TEST(entries[i].cell() == cells[i]);
    BOOST_TEST((entries[i].due() == ticks[i]));
  }
}

BOOST_AUTO_TEST_CASE(drained_entries_can_be_erased)
{
  constexpr std::size_t n = chunk::capacity;
  timing_wheel wheel(tight);
  std::vector<wheel_entry> entries(3 * n);
  for (auto& e : entries) wheel.insert(e, tick{5});
  wheel.drain();
  BOOST_TEST(wheel.pop_drained() == &entries[0]);
  for (std::size_t i = 1; i < 2 * n; ++i) wheel.erase_drained(entries[i]);
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST(wheel.size() == n);
  BOOST_TEST(wheel.pop_drained() == &entries[2 * n]);
  for (std::size_t i = 3 * n; i-- > 2 * n + 1;) wheel.erase_drained(entries[i]);
  BOOST_TEST(!wheel.has_drained());
  BOOST_TEST(wheel.pop_drained() == nullptr);
  BOOST_TEST(wheel.check() == "");
}

BOOST_AUTO_TEST_CASE(entry_popped_before_a_drain_does_not_come_back)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 5> entries;
  wheel.insert(entries[0], tick{100});
  wheel.drain();
  for (std::size_t i = 1; i < entries.size(); ++i) wheel.insert(entries[i], tick{1});
  wheel.advance(tick{1});
  BOOST_TEST(wheel.pop_due() == &entries[1]);
  BOOST_TEST(wheel.pop_due() == &entries[2]);
  wheel.drain();  // puts half a chunk behind what was drained before
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST((pop_all_drained(wheel) == those(entries, {0, 3, 4})));
}

BOOST_AUTO_TEST_CASE(drain_does_not_skip_what_follows_a_half_popped_chunk)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 5> entries;
  for (std::size_t i = 0; i < 3; ++i) wheel.insert(entries[i], tick{1});
  wheel.drain();
  BOOST_TEST(wheel.pop_drained() == &entries[0]);
  BOOST_TEST(wheel.pop_drained() == &entries[1]);
  for (std::size_t i = 3; i < 5; ++i) wheel.insert(entries[i], tick{1});
  wheel.drain();
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST((pop_all_drained(wheel) == those(entries, {2, 3, 4})));
}

BOOST_AUTO_TEST_CASE(due_entries_that_follow_a_drain_are_popped_from_the_first_on)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 4> entries;
  for (std::size_t i = 0; i < 2; ++i) wheel.insert(entries[i], tick{1});
  wheel.advance(tick{1});
  BOOST_TEST(wheel.pop_due() == &entries[0]);
  wheel.drain();  // takes the chunk that was half popped
  for (std::size_t i = 2; i < 4; ++i) wheel.insert(entries[i], tick{2});
  wheel.advance(tick{2});
  BOOST_TEST((pop_all(wheel) == those(entries, {2, 3})));
}

BOOST_AUTO_TEST_CASE(time_passes_over_drained_entries)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 4> entries;
  wheel.insert(entries[0], tick{20});
  wheel.insert(entries[1], tick{30});
  wheel.drain();
  wheel.insert(entries[2], tick{20});
  wheel.advance(tick{25});
  BOOST_TEST((pop_all(wheel) == those(entries, {2})));
  wheel.rewind(tick{10});
  wheel.insert(entries[3], tick{11});
  BOOST_TEST(wheel.check() == "");
  BOOST_TEST((wheel.next_tick() == tick{11}));
  BOOST_TEST((pop_all_drained(wheel) == those(entries, {0, 1})));
  wheel.advance(tick{11});
  BOOST_TEST((pop_all(wheel) == those(entries, {3})));
}

BOOST_AUTO_TEST_CASE(check_sees_an_older_entry_behind_a_newer_one)
{
  const auto complains = [](const timing_wheel& wheel) {
    return wheel.check() == "" && wheel.check(lies_before).starts_with("order: ");
  };
  for (const tick when : {tick{5}, tick{50}, tick{5000}, never}) {
    timing_wheel wheel(tight);
    std::array<wheel_entry, 2> entries;
    wheel.insert(entries[1], when);
    wheel.insert(entries[0], when);
    BOOST_TEST(complains(wheel));
    if (when != never) wheel.advance(when);
    BOOST_TEST(complains(wheel));
    wheel.drain();
    BOOST_TEST(complains(wheel));
  }
}

BOOST_AUTO_TEST_CASE(check_puts_up_with_ticks_that_were_inserted_in_another_order)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 4> entries;
  wheel.insert(entries[0], tick{52});  // these two share a slot
  wheel.insert(entries[1], tick{51});
  wheel.insert(entries[2], tick{52});
  BOOST_TEST(wheel.check(lies_before) == "");
  wheel.advance(tick{52});
  wheel.rewind(tick{5});  // makes their ticks equal
  wheel.insert(entries[3], tick{5});
  BOOST_TEST(wheel.check(lies_before) == "");
  wheel.drain();
  BOOST_TEST(wheel.check(lies_before) == "");
  BOOST_TEST((pop_all_drained(wheel) == those(entries, {1, 0, 2, 3})));
}

BOOST_AUTO_TEST_CASE(slot_of_many_chunks_is_cascaded_in_pieces_until_its_first_tick)
{
  constexpr std::size_t chunks = 64, ticks = 16;
  timing_wheel wheel(roomy);
  std::vector<wheel_entry> entries(chunks * chunk::capacity);
  for (std::size_t i = 0; i < entries.size(); ++i) wheel.insert(entries[i], tick{96 + i % 16});
  BOOST_TEST((wheel.next_tick() == tick{80}));
  for (std::uint64_t t = 80; t < 96; ++t) {
    const std::uint64_t before = wheel.cascaded();
    wheel.advance(*wheel.next_tick());
    BOOST_TEST((wheel.now() == tick{t}));
    BOOST_TEST(wheel.cascaded() - before == entries.size() / ticks);
    BOOST_TEST(wheel.check(lies_before) == "");
  }
  BOOST_TEST(!wheel.has_due());
  BOOST_TEST((wheel.next_tick() == tick{96}));
  BOOST_TEST(wheel.cascaded() == entries.size());
}

BOOST_AUTO_TEST_CASE(entries_filed_in_the_midst_of_a_cascade_follow_the_older_ones_of_their_tick)
{
  timing_wheel wheel(roomy);
  std::vector<wheel_entry> entries(64 * chunk::capacity);
  const std::size_t half = entries.size() / 2;
  for (std::size_t i = 0; i < half; ++i) wheel.insert(entries[i], tick{100});
  wheel.advance(tick{85});
  BOOST_TEST(wheel.cascaded() > 0u);
  BOOST_TEST(wheel.cascaded() < half);
  for (std::size_t i = half; i < entries.size(); ++i) {
    wheel.insert(entries[i], tick{100});
    if (i % 100 == 0 && wheel.now() < tick{95}) wheel.advance(wheel.now() + 1);
  }
  BOOST_TEST(wheel.check(lies_before) == "");
  wheel.advance(tick{99});
  BOOST_TEST(!wheel.has_due());
  wheel.advance(tick{100});
  for (const auto& e : entries) {
    if (wheel.pop_due() != &e) BOOST_FAIL("out of order");
  }
  BOOST_TEST(wheel.check() == "");
}

BOOST_AUTO_TEST_CASE(cascade_that_begins_too_late_is_made_good_at_once)
{
  timing_wheel wheel(roomy);
  std::vector<wheel_entry> entries(100 * chunk::capacity);
  for (auto& e : entries) wheel.insert(e, tick{300});
  wheel.advance(tick{299});  // from level 2
  BOOST_TEST(!wheel.has_due());
  BOOST_TEST(wheel.check(lies_before) == "");
  wheel.advance(tick{300});
  for (const auto& e : entries) {
    if (wheel.pop_due() != &e) BOOST_FAIL("out of order");
  }
}

BOOST_AUTO_TEST_CASE(cascade_that_was_begun_survives_a_rewind_and_a_drain)
{
  for (const bool rewinds : {true, false}) {
    timing_wheel wheel(roomy);
    std::vector<wheel_entry> entries(32 * chunk::capacity);
    for (auto& e : entries) wheel.insert(e, tick{100});
    wheel.advance(tick{85});
    if (rewinds) {
      wheel.rewind(tick{3});
      BOOST_TEST(wheel.check(lies_before) == "");
      wheel.advance(tick{100});
    } else {
      wheel.drain();
      BOOST_TEST(wheel.check(lies_before) == "");
    }
    for (const auto& e : entries) {
      if ((rewinds ? wheel.pop_due() : wheel.pop_drained()) != &e) BOOST_FAIL("out of order");
    }
  }
}

#if defined(__linux__)
BOOST_AUTO_TEST_CASE(unused_wheel_takes_no_memory_for_its_slots)
{
  constexpr std::size_t n = 256;
  std::deque<timing_wheel> wheels;
  const std::size_t before = support::resident_memory();
  for (std::size_t i = 0; i < n; ++i) wheels.emplace_back(wheel_geometry{});
  BOOST_TEST(support::resident_memory() - before < n * 32 * 1024);
}
#endif

BOOST_AUTO_TEST_CASE(geometry_out_of_range_is_refused)
{
  const auto make = [](unsigned slot_bits, unsigned fan_bits) {
    const timing_wheel wheel({.slot_bits = slot_bits, .fan_bits = fan_bits});
  };
  BOOST_CHECK_THROW(make(3, 0), std::invalid_argument);
  BOOST_CHECK_THROW(make(3, 4), std::invalid_argument);
  BOOST_CHECK_THROW(make(17, 8), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
