// Walking through a wheel in pieces, while entries come, go and move.
#include <detail/wheel/timing_wheel.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "support/small_wheels.hpp"

namespace {

using namespace asio_wheel::detail;

/// Walks to the end, a chunk at a time. Calls `between()` after each piece.
template <class Between>
std::vector<const wheel_entry*> walk_through(timing_wheel& wheel, wheel_walk way, Between between)
{
  std::vector<const wheel_entry*> met;
  std::array<wheel_entry*, chunk::capacity> piece;
  while (!way.has_ended()) {
    const std::size_t n = wheel.walk(way, piece);
    met.insert(met.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
    between();
  }
  return met;
}

constexpr auto nothing = [] {};

}  // namespace

BOOST_AUTO_TEST_SUITE(timing_wheel_walk)

BOOST_AUTO_TEST_CASE(meets_each_entry_once_if_nothing_changes)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 300> entries;
  for (std::size_t i = 0; i < entries.size(); ++i)
    wheel.insert(entries[i], i % 50 == 0 ? never : tick{i % 100});  // levels 0 to 2, and never
  wheel.advance(tick{20});
  for (int i = 0; i < 5; ++i) static_cast<void>(wheel.pop_due());
  const auto met = walk_through(wheel, wheel.begin_walk(), nothing);
  BOOST_TEST(met.size() == wheel.size());
  BOOST_TEST((std::set<const wheel_entry*>(met.begin(), met.end()).size() == wheel.size()));
  BOOST_TEST(wheel.check() == "");
}

BOOST_AUTO_TEST_CASE(misses_none_that_stays_whatever_happens_between_two_pieces)
{
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
    timing_wheel wheel(tight);
    std::vector<std::unique_ptr<wheel_entry>> entries;
    std::set<wheel_entry*> filed;
    std::set<const wheel_entry*> staying;
    const auto insert = [&](unsigned ahead) {
      entries.push_back(std::make_unique<wheel_entry>());
      wheel.insert(*entries.back(), wheel.now() + below(ahead));
      filed.insert(entries.back().get());
    };
    const auto erase = [&] {
      if (filed.empty()) return;
      wheel_entry* const e = *std::next(filed.begin(), below(static_cast<unsigned>(filed.size())));
      if (wheel.is_due(*e))
        wheel.erase(*e);
      else
        wheel.erase(*e);
      filed.erase(e);
      staying.erase(e);
    };
    // Few ticks make long slots; many, cascades.
    const unsigned ahead = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 100 : 400;
    for (unsigned i = below(400); i > 0; --i) insert(ahead);
    staying.insert(filed.begin(), filed.end());

    const auto met = walk_through(wheel, wheel.begin_walk(), [&] {
      for (unsigned i = below(20); i > 0; --i) insert(ahead);
      for (unsigned i = below(40); i > 0; --i) erase();
      if (below(4) == 0) wheel.advance(wheel.now() + below(30));
      for (unsigned i = below(8); i > 0; --i) {
        wheel_entry* const e = wheel.pop_due();
        filed.erase(e);
        staying.erase(e);
      }
    });
    const std::set<const wheel_entry*> seen(met.begin(), met.end());
    const bool all_seen = std::includes(seen.begin(), seen.end(), staying.begin(), staying.end());
    BOOST_TEST(all_seen, "an entry was missed, seed " << seed);
    BOOST_TEST(wheel.check() == "");
  }
}

BOOST_AUTO_TEST_CASE(of_the_first_slot_of_a_level_meets_that_one_alone)
{
  timing_wheel wheel(tight);
  std::array<wheel_entry, 60> entries;
  for (std::size_t i = 0; i < entries.size(); ++i) wheel.insert(entries[i], tick{16 + i % 20});
  BOOST_TEST(count(wheel.first_tick(0)) == count(never));
  BOOST_REQUIRE(count(wheel.first_tick(1)) == 16U);
  const auto met = walk_through(wheel, wheel.begin_walk_of_first(1), nothing);
  BOOST_TEST(met.size() == 24U);  // ticks 16 to 23, three times
  for (const wheel_entry* e : met) BOOST_TEST(count(e->due()) < 24U);

  wheel.advance(tick{16});
  BOOST_TEST(count(wheel.first_tick(0)) == 17U);
  BOOST_TEST(count(wheel.first_tick(1)) == 24U);
  BOOST_TEST(count(wheel.first_tick(2)) == count(never));
  wheel_entry distant;
  wheel.insert(distant, tick{1000});
  BOOST_TEST(count(wheel.first_tick(3)) == 512U);
  wheel.erase(distant);
}

BOOST_AUTO_TEST_SUITE_END()
