// What Boost.Beast's own examples call without its namespace.
#include <asio_wheel/beast.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(lowest_layer)

BOOST_AUTO_TEST_CASE(is_found_without_a_namespace)
{
  boost::asio::io_context context;
  asio_wheel::tcp_stream stream(context);
  BOOST_TEST(&get_lowest_layer(stream) == &stream);
}

BOOST_AUTO_TEST_SUITE_END()
