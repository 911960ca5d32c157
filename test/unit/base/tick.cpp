// Compares the divider with the language's division.
#include <asio_wheel/detail/wheel/wheel_entry.hpp>
#include <detail/base/divider.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <random>

namespace {

using namespace asio_wheel;
using namespace asio_wheel::detail;

constexpr std::uint64_t largest{std::numeric_limits<std::int64_t>::max()};

bool divides(const divider& d, std::uint64_t n)
{
  return d.divide(n) == n / d.divisor;
}

/// Numbers around multiples of the divisor, where an estimate is most likely to be wrong.
bool divides_around(const divider& d, std::uint64_t n)
{
  const std::uint64_t multiple = n - n % d.divisor;
  return divides(d, n) && divides(d, multiple) && (multiple == 0 || divides(d, multiple - 1)) &&
         (multiple == largest || divides(d, multiple + 1));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dividing)

BOOST_AUTO_TEST_CASE(is_exact_for_every_length_of_a_tick_and_any_time)
{
  std::mt19937_64 random(1);
  for (const std::uint64_t divisor :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1000},
        std::uint64_t{1000000}, std::uint64_t{4096}, std::uint64_t{999999937},
        std::uint64_t{86400000000000}, largest}) {
    const divider d(divisor);
    BOOST_TEST_CONTEXT("divisor " << divisor)
    {
      BOOST_TEST(divides_around(d, 0));
      BOOST_TEST(divides_around(d, largest));
      bool all = true;
      for (int i = 0; i < 100000; ++i) all = all && divides_around(d, random() >> (1 + i % 63));
      BOOST_TEST(all);
    }
  }
}

#if defined(__SIZEOF_INT128__)
BOOST_AUTO_TEST_CASE(has_a_product_of_halves_that_is_that_of_the_whole)
{
  __extension__ using wide = unsigned __int128;
  std::mt19937_64 random(2);
  bool all = true;
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t a = random() >> i % 64;
    const std::uint64_t b = random();
    all = all && multiply_high_by_halves(a, b) == static_cast<std::uint64_t>(wide{a} * b >> 64);
  }
  BOOST_TEST(all);
}
#endif

BOOST_AUTO_TEST_CASE(has_a_product_of_halves_that_does_not_overflow)
{
  BOOST_TEST(multiply_high_by_halves(~std::uint64_t{0}, ~std::uint64_t{0}) == ~std::uint64_t{1});
}

BOOST_AUTO_TEST_SUITE_END()
