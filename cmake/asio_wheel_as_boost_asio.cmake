# asio_wheel_as_boost_asio: headers by the names of Boost.Asio's that forward to the standalone Asio.
# The tests, the examples and the benchmarks are written for Boost.Asio; with these the same sources
# compile with the library's other half. For this build alone: they are not installed.
set(folder ${CMAKE_CURRENT_BINARY_DIR}/as_boost_asio)
get_target_property(includes asio::asio INTERFACE_INCLUDE_DIRECTORIES)
list(GET includes 0 asio)
file(GLOB_RECURSE headers RELATIVE ${asio} ${asio}/asio.hpp ${asio}/asio/*.hpp)
foreach(header IN LISTS headers)
  file(CONFIGURE OUTPUT ${folder}/boost/${header} @ONLY CONTENT
    "#pragma once\n#include <@header@>\n#include <boost/asio_wheel_names.hpp>\n")
endforeach()
file(CONFIGURE OUTPUT ${folder}/boost/asio_wheel_names.hpp @ONLY CONTENT [=[
#pragma once
#include <system_error>
namespace asio {}
namespace boost {
namespace asio = ::asio;
namespace system {
using std::error_category;
using std::error_code;
using std::generic_category;
using std::system_category;
using std::system_error;
}
}
]=])
foreach(header IN ITEMS error_code system_error)
  file(CONFIGURE OUTPUT ${folder}/boost/system/${header}.hpp
    CONTENT "#pragma once\n#include <boost/asio_wheel_names.hpp>\n")
endforeach()

add_library(asio_wheel_as_boost_asio INTERFACE)
target_include_directories(asio_wheel_as_boost_asio BEFORE INTERFACE ${folder})
target_link_libraries(asio_wheel_as_boost_asio INTERFACE Boost::headers)
