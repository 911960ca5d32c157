// L2 service: the names that the library borrows from Asio.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

namespace asio_wheel {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace asio_wheel
