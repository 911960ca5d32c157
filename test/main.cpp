// main() of every test program. Written out, because BOOST_TEST_MODULE does not work with a
// precompiled <boost/test/unit_test.hpp>.
#include <boost/test/unit_test.hpp>

int main(int argc, char* argv[])
{
#if defined(BOOST_TEST_DYN_LINK)
  const auto start = [] { return true; };
#else
  const auto start = [](int, char*[]) -> boost::unit_test::test_suite* { return nullptr; };
#endif
  return boost::unit_test::unit_test_main(start, argc, argv);
}
