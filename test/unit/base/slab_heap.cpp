// Blocks out of slabs: none is handed out twice, and empty slabs go back to the system.
#include <detail/base/slab_heap.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "support/heap.hpp"
#include "support/resident.hpp"
#include "support/scale.hpp"

namespace {

using namespace asio_wheel::detail;

// A sanitizer has memory of its own.
constexpr bool can_measure =
#if defined(__linux__)
  !support::under_sanitizer;
#else
  false;
#endif

constexpr std::size_t megabyte = std::size_t{1} << 20;

using blocks = std::vector<void*>;

/// Takes blocks, and fills them: who reads or writes a block that is out, is found out.
blocks take(slab_heap& heap, std::size_t lines, std::size_t n)
{
  blocks taken;
  for (std::size_t i = 0; i < n; ++i) {
    taken.push_back(heap.take(lines));
    std::memset(taken.back(), 0xee, lines * block_unit);
  }
  return taken;
}

bool is_whole(const void* block, std::size_t lines)
{
  const auto* const bytes = static_cast<const unsigned char*>(block);
  return std::all_of(bytes, bytes + lines * block_unit, [](unsigned char b) { return b == 0xee; });
}

void shuffle(blocks& all)
{
  std::shuffle(all.begin(), all.end(), std::mt19937(7));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(slab_heap_itself)

BOOST_AUTO_TEST_CASE(blocks_of_every_size_are_apart_and_aligned)
{
  slab_heap heap;
  for (std::size_t lines = 1; lines <= most_block_units; ++lines) {
    const std::size_t alignment = block_unit * (lines & ~(lines - 1));
    blocks all = take(heap, lines, 2000);
    BOOST_TEST(std::set<void*>(all.begin(), all.end()).size() == all.size());
    for (const void* b : all) {
      BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(b) % alignment == 0u);
      BOOST_REQUIRE(is_whole(b, lines));
    }
    for (void* b : all) heap.give_back(b);
  }
}

BOOST_AUTO_TEST_CASE(block_that_was_given_back_is_taken_next)
{
  slab_heap heap;
  void* const b = heap.take(3);
  heap.give_back(b);
  BOOST_TEST(heap.take(3) == b);
  heap.give_back(b);
}

BOOST_AUTO_TEST_CASE(empty_slabs_serve_blocks_of_another_size)
{
  slab_heap heap;
  for (void* b : take(heap, 1, 20'000)) heap.give_back(b);
  const std::size_t slabs = heap.slabs();
  for (std::size_t lines = 2; lines <= most_block_units; ++lines)
    for (void* b : take(heap, lines, 18'000 / lines)) heap.give_back(b);
  BOOST_TEST(heap.slabs() == slabs);
}

BOOST_AUTO_TEST_CASE(what_is_reserved_is_taken_without_memory)
{
  slab_heap heap;
  heap.reserve(10);
  const std::size_t n = 10 * slab_heap::blocks_of_slab(2);
  blocks all;
  all.reserve(n);
  {
    const support::heap_limit none(0);
    while (all.size() < n) all.push_back(heap.take(2));
  }
  for (void* b : all) heap.give_back(b);
}

BOOST_AUTO_TEST_CASE(what_another_thread_returns_is_taken_again)
{
  slab_heap heap;
  for (int round = 0; round < 50; ++round) {
    const blocks all = take(heap, 2, 5000);
    std::thread([&] {
      slab_heap other;
      for (void* b : all) other.give_back_to_owners(::new (b) free_block{}, 1);
    }).join();
  }
  // It looks for what was returned in a part of the slabs each time.
  BOOST_TEST(heap.slabs() * slab_heap::blocks_of_slab(2) < 4 * 5000u);
}

BOOST_AUTO_TEST_CASE(blocks_outlive_their_heap)
{
  const std::size_t before = support::heap_in_use();
  {
    blocks small, large;
    {
      slab_heap heap;
      small = take(heap, 1, 3000);
      large = take(heap, 8, 300);
      for (std::size_t i = 0; i < 1000; ++i) heap.give_back(small[i]);
      for (std::size_t i = 1000; i < 2000; ++i) slab_heap::return_block(small[i]);
      small.erase(small.begin(), small.begin() + 2000);
    }
    small.insert(small.end(), large.begin(), large.end());
    shuffle(small);
    for (void* b : small) {
      BOOST_REQUIRE(is_whole(b, 1));
      slab_heap::return_block(b);
    }
  }
  BOOST_TEST(support::heap_in_use() == before);
}

BOOST_AUTO_TEST_CASE(threads_return_blocks_while_their_heap_takes_more_and_goes)
{
  const int rounds = static_cast<int>(support::scaled(400)) / 10 + 5;
  const std::size_t before = support::heap_in_use();
  for (int round = 0; round < rounds; ++round) {
    constexpr std::size_t n = 2000;
    std::array<std::atomic<void*>, n> handed{};
    const auto end_each = [&](std::size_t from) {
      for (std::size_t i = from; i < n; i += 2) {
        void* b = nullptr;
        while (!(b = handed[i].load(std::memory_order_acquire))) std::this_thread::yield();
        if (!is_whole(b, 2)) std::abort();
        slab_heap::return_block(b);
      }
    };
    std::thread even(end_each, 0), odd(end_each, 1);
    {
      slab_heap heap;
      for (auto& h : handed) {
        void* const own = heap.take(2);
        h.store(take(heap, 2, 1).front(), std::memory_order_release);
        heap.give_back(own);
      }
    }
    even.join();
    odd.join();
  }
  BOOST_TEST(support::heap_in_use() == before);
}

BOOST_AUTO_TEST_CASE(memory_goes_back_to_the_system_when_slabs_are_empty)
{
  constexpr std::size_t n = 400'000;
  for (const bool in_order : {true, false}) {
    slab_heap heap;
    const std::size_t before = support::resident_memory();
    blocks all = take(heap, 2, n);
    const std::size_t peak = support::resident_memory();
    if (!in_order) shuffle(all);
    for (void* b : all) heap.give_back(b);
    if (!can_measure) continue;
    BOOST_TEST(peak - before > 40 * megabyte);
    BOOST_TEST(support::resident_memory() < before + 8 * megabyte);  // of which `all` is 3
  }
}

BOOST_AUTO_TEST_CASE(blocks_that_stay_keep_their_slabs_alone)
{
  constexpr std::size_t n = 400'000;
  slab_heap heap;
  const std::size_t before = support::resident_memory();
  const blocks all = take(heap, 2, n);
  const std::size_t peak = support::resident_memory();
  for (std::size_t i = 0; i < n; ++i)
    if (i % 2000 != 0) heap.give_back(all[i]);
  if (can_measure) BOOST_TEST(support::resident_memory() < before + (peak - before) / 3);
  for (std::size_t i = 0; i < n; i += 2000) {
    BOOST_REQUIRE(is_whole(all[i], 2));
    heap.give_back(all[i]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
