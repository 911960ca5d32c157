# Makes asio::asio, the standalone Asio's headers, unless a project or a package manager has made it;
# sets asio_wheel_asio_missing if it cannot. The installed package comes with this file, too.
if(NOT TARGET asio::asio)
  find_package(asio CONFIG QUIET)
endif()
if(NOT TARGET asio::asio)
  find_path(ASIO_WHEEL_STANDALONE_INCLUDE_DIR asio.hpp HINTS "${ASIO_WHEEL_ASIO_INCLUDE_DIR}")
  mark_as_advanced(ASIO_WHEEL_STANDALONE_INCLUDE_DIR)
  set(asio_wheel_asio_missing "no asio.hpp; ASIO_WHEEL_ASIO_INCLUDE_DIR says where it is")
  if(ASIO_WHEEL_STANDALONE_INCLUDE_DIR)
    file(STRINGS ${ASIO_WHEEL_STANDALONE_INCLUDE_DIR}/asio/version.hpp version
      REGEX "define ASIO_VERSION ")
    string(REGEX REPLACE "[^0-9]" "" version "${version}")
    set(asio_wheel_asio_missing
      "${ASIO_WHEEL_STANDALONE_INCLUDE_DIR} has ASIO_VERSION ${version}, and 103000 is needed")
    if(version GREATER_EQUAL 103000)
      add_library(asio::asio INTERFACE IMPORTED)
      target_include_directories(asio::asio INTERFACE ${ASIO_WHEEL_STANDALONE_INCLUDE_DIR})
    endif()
  endif()
endif()
