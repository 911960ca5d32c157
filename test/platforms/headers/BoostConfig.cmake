# Boost for a cross build: its headers, and Boost.Test compiled from them. See ../cross.sh.
set(Boost_FOUND TRUE)
set(Boost_VERSION_MAJOR 1)
set(Boost_VERSION_MINOR 81)
if(NOT TARGET Boost::headers)
  add_library(Boost::headers INTERFACE IMPORTED GLOBAL)
  set_target_properties(Boost::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/include)

  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/unit_test_framework.cpp CONTENT [=[
#define BOOST_TEST_NO_MAIN
#include <boost/test/included/unit_test.hpp>
]=])
  add_library(boost_unit_test_framework STATIC ${CMAKE_BINARY_DIR}/unit_test_framework.cpp)
  target_link_libraries(boost_unit_test_framework PUBLIC Boost::headers)
  add_library(Boost::unit_test_framework ALIAS boost_unit_test_framework)

  # Of the programs that take options, none is built.
  add_library(Boost::program_options INTERFACE IMPORTED GLOBAL)
  target_link_libraries(Boost::program_options INTERFACE Boost::headers)
endif()
