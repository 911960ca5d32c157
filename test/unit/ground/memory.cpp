// Pages that are cut into blocks, and put together again.
#include <asio_wheel/detail/ground/memory.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <set>
#include <vector>

namespace {

using namespace asio_wheel::detail;

struct alignas(page_size) page {
  std::array<std::byte, page_size> bytes;
};

std::vector<free_block*> pop_all(free_blocks& blocks)
{
  std::vector<free_block*> popped;
  while (free_block* const b = blocks.pop_front()) popped.push_back(b);
  return popped;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(free_blocks_of_pages)

BOOST_AUTO_TEST_CASE(whole_pages_are_found_whatever_the_order_and_the_rest_stays)
{
  std::mt19937 random(1);
  for (const std::size_t block_size : {64u, 128u, 192u, 448u, 512u, 4096u}) {
    std::vector<page> pages(20);
    free_blocks cut;
    for (page& p : pages) cut.cut(&p, block_size);
    BOOST_TEST(cut.size() == pages.size() * (page_size / block_size));

    // Of every third page a block is in use.
    std::vector<free_block*> blocks = pop_all(cut);
    std::set<free_block*> whole;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      auto* const first = reinterpret_cast<free_block*>(&pages[i]);
      if (i % 3 != 0) whole.insert(first);
      if (i % 3 == 0) blocks.erase(std::find(blocks.begin(), blocks.end(), first));
    }
    std::shuffle(blocks.begin(), blocks.end(), random);
    free_blocks free;
    for (free_block* b : blocks) free.push_front(*b);

    free_blocks found = free.take_pages(block_size);
    BOOST_TEST(found.size() == whole.size());
    BOOST_TEST(free.size() + whole.size() * (page_size / block_size) == blocks.size());
    const std::vector<free_block*> in_order = pop_all(found);
    BOOST_TEST(std::equal(in_order.begin(), in_order.end(), whole.begin(), whole.end()));
    for (const free_block* b : pop_all(free)) {
      const auto of_page = (reinterpret_cast<const std::byte*>(b) - pages.front().bytes.data()) /
                           static_cast<std::ptrdiff_t>(page_size);
      BOOST_TEST(of_page % 3 == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(splicing_keeps_both_orders)
{
  std::array<free_block, 5> b;
  free_blocks first, second, none;
  for (int i : {1, 0}) first.push_front(b[static_cast<std::size_t>(i)]);
  for (int i : {4, 3, 2}) second.push_front(b[static_cast<std::size_t>(i)]);
  second.splice_front(none);
  second.splice_front(first);
  BOOST_TEST(first.empty());
  BOOST_TEST(second.size() == 5u);
  none.splice_front(second);
  const std::vector<free_block*> all = pop_all(none);
  BOOST_TEST_REQUIRE(all.size() == 5u);
  for (std::size_t i = 0; i < all.size(); ++i) BOOST_TEST(all[i] == &b[i]);
}

BOOST_AUTO_TEST_SUITE_END()
