# Read by cpack before it makes a package: says what a Debian package takes, if that is not here.
if(CPACK_GENERATOR STREQUAL "DEB")
  foreach(tool_package IN ITEMS dpkg-shlibdeps=dpkg-dev file=file)
    string(REPLACE "=" ";" tool_package ${tool_package})
    list(GET tool_package 0 tool)
    list(GET tool_package 1 package)
    find_program(ASIO_WHEEL_CPACK_${tool} ${tool})
    if(NOT ASIO_WHEEL_CPACK_${tool})
      message(FATAL_ERROR "To make a Debian package, cpack needs ${tool}: install ${package}, "
        "or take another generator, like cpack -G TGZ")
    endif()
  endforeach()
endif()
