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

#if defined(__SANITIZE_THREAD__)
// What ThreadSanitizer cannot see: the fence by which Asio counts the owners of an any_io_executor
// down, and how the standard library counts those of an exception, which is compiled without it.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions()
{
  return "race:boost::asio::execution::detail::shared_target_executor\n"
         "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
