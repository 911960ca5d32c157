// The library's own error code and its category.
#include <boost/test/unit_test.hpp>
#include <string>
#include <system_error>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

using namespace asio_wheel;
using namespace asio_wheel::detail;

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(convert_to_a_boost_error_code)
{
  const boost::system::error_code ec = wheel_errc::too_many_pending;
  BOOST_TEST(!!ec);
  BOOST_TEST(ec.value() == 1);
  BOOST_TEST(ec == wheel_errc::too_many_pending);
  BOOST_TEST(ec != boost::asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(convert_to_a_standard_error_code)
{
  const std::error_code ec = boost::system::error_code(wheel_errc::too_many_pending);
  BOOST_TEST(ec.value() == 1);
  BOOST_TEST(std::string(ec.category().name()) == "asio_wheel");
  BOOST_TEST(ec.message().find("pending") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(convert_to_a_standard_error_code_directly)
{
  const std::error_code ec = wheel_errc::too_many_pending;
  BOOST_TEST(ec.value() == 1);
  BOOST_TEST(std::string(ec.category().name()) == "asio_wheel");
}

BOOST_AUTO_TEST_CASE(have_a_category_with_a_name_and_messages)
{
  const boost::system::error_code ec = wheel_errc::too_many_pending;
  BOOST_TEST(std::string(ec.category().name()) == "asio_wheel");
  BOOST_TEST(ec.message().find("pending") != std::string::npos);
  BOOST_TEST(!ec.category().message(99).empty());
  BOOST_TEST(ec.category().message(99) != ec.message());
}

BOOST_AUTO_TEST_SUITE_END()
