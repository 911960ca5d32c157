// main() of every test program. Written out, because BOOST_TEST_MODULE does not work with a
// precompiled <boost/test/unit_test.hpp>.
#include <boost/test/unit_test.hpp>

int main(int argc, char* argv[])
{
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
