// What a shard says there is to wake up for next, against a fresh look at its wheel, by random
// scripts of waits that are filed and met.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <detail/engine/core.hpp>
#include <detail/engine/shard.hpp>

#include "support/wheel.hpp"

using namespace asio_wheel;
using namespace asio_wheel::detail;

namespace {

struct plain_wait : wait_op {
  plain_wait() : wait_op([](wait_op&, shard&, wait_request, time_point) {}, {}) {}
};

struct shard_alone : support::context_with_wheel {
  explicit shard_alone(std::size_t slots = 1024) : context_with_wheel(with_slots(slots)) {}
  ~shard_alone()
  {
    while (!filed.empty()) erase(0);
    const locked lock(s);
    static_cast<void>(s.take_unneeded());
  }

  static wheel_options with_slots(std::size_t slots)
  {
    wheel_options options;
    options.slots = slots;
    options.shards = 1;
    return options;
  }

  void file(std::uint64_t ticks)
  {
    const locked lock(s);
    auto& op = *filed.emplace_back(std::make_unique<plain_wait>());
    static_cast<void>(s.file(op, tick{count(s.wheel().now()) + ticks}));
  }

  void erase(std::size_t i)
  {
    const locked lock(s);
    s.drop_filed(*filed[i]);
    filed[i] = std::move(filed.back());
    filed.pop_back();
  }

  /// As the driver's thread and tell_driver() do.
  void tell()
  {
    const locked lock(s);
    static_cast<void>(s.take_unneeded());
  }

  maybe_tick by_a_fresh_look()
  {
    const locked lock(s);
    return s.wheel().next_tick();
  }

  shard& s = core_of(wheel).shards.local();
  std::vector<std::unique_ptr<plain_wait>> filed;
};

void play(std::size_t slots, std::uint32_t seed)
{
  shard_alone a(slots);
  std::mt19937 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  // Some scripts have few ticks, so that waits share slots.
  const std::uint64_t spread = std::uint64_t{1} << (3 + below(14));
  for (int step = 0; step < 400; ++step) {
    const bool is_told = below(3) != 0;
    if (a.filed.empty() || below(5) < 2)
      a.file(1 + below(spread));
    else
      a.erase(below(2) != 0 ? a.filed.size() - 1 : static_cast<std::size_t>(below(a.filed.size())));
    if (is_told) a.tell();
    if (below(2) != 0) continue;
    const maybe_tick said = a.s.next_tick();
    const maybe_tick fresh = a.by_a_fresh_look();
    BOOST_TEST_REQUIRE((said <= fresh),
                       "slots " << slots << ", seed " << seed << ", step " << step);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shard_next_tick)

BOOST_AUTO_TEST_CASE(is_that_of_before_when_a_request_was_met)
{
  shard_alone a;
  a.file(20'000);
  BOOST_TEST((a.s.next_tick() == a.by_a_fresh_look()));
  for (std::uint64_t i = 0; i < 5; ++i) {
    a.file(5'000 + i);
    BOOST_TEST((a.s.next_tick() == a.by_a_fresh_look()));
    a.erase(1);
    a.tell();
    BOOST_TEST((a.s.next_tick() == a.by_a_fresh_look()));
  }
}

BOOST_AUTO_TEST_CASE(is_none_when_nothing_is_left)
{
  shard_alone a;
  a.file(5'000);
  a.erase(0);
  a.tell();
  BOOST_TEST(!a.s.next_tick());
}

BOOST_AUTO_TEST_CASE(is_never_later_than_a_fresh_look_says)
{
  for (const std::size_t slots : {4U, 16U, 1024U})
    for (std::uint32_t seed = 0; seed < 60; ++seed) play(slots, seed);
}

BOOST_AUTO_TEST_SUITE_END()
