# Functions shared by the library, its tests, examples and benchmarks.

# Warnings are for work on this project, not for projects that add it as a subdirectory.
function(asio_wheel_set_warnings target)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  if(MSVC)
    target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${ASIO_WHEEL_WARNINGS_AS_ERRORS}>:/WX>)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wthread-safety>)
  if(ASIO_WHEEL_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# asio_wheel_choose_part(<NAME> <what> <Boost's library>...): resolves ASIO_WHEEL_BUILD_<NAME>. By
# default a part is built where what it needs is found; what is asked for has to be there.
function(asio_wheel_choose_part name what)
  set(ASIO_WHEEL_BUILD_${name} AUTO CACHE STRING
    "Build the ${what}: ON, OFF or AUTO, which is where what they need is found")
  set(value ${ASIO_WHEEL_BUILD_${name}})
  if(value STREQUAL "AUTO")
    set(value ${PROJECT_IS_TOP_LEVEL})
    if(value)
      find_package(Boost 1.81 CONFIG QUIET OPTIONAL_COMPONENTS ${ARGN})
      set(missing ${ARGN})
      foreach(component IN LISTS ARGN)
        if(TARGET Boost::${component})
          list(REMOVE_ITEM missing ${component})
        endif()
      endforeach()
      if(missing)
        list(JOIN missing " and " missing)
        message(STATUS "No ${what}: they need Boost's ${missing}")
        set(value OFF)
      endif()
    endif()
  endif()
  set(ASIO_WHEEL_BUILD_${name} ${value} PARENT_SCOPE)
endfunction()

# What programs link: the library, and for their includes of Boost.Asio, if the library is not on
# it, headers that forward to the standalone one (cmake/standalone).
if(ASIO_WHEEL_ASIO STREQUAL "standalone")
  set(asio_wheel_libraries asio_wheel_as_boost_asio asio_wheel::standalone)
else()
  set(asio_wheel_libraries asio_wheel::asio_wheel)
endif()

# asio_wheel_precompile(<target>): lets a target of the examples or benchmarks share one precompiled
# header, if ASIO_WHEEL_PRECOMPILE says so.
function(asio_wheel_precompile target)
  if(NOT ASIO_WHEEL_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET asio_wheel_precompiled)
    set(source ${PROJECT_BINARY_DIR}/asio_wheel_precompiled.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(asio_wheel_precompiled OBJECT ${source})
    # Clang refuses a header that was compiled without the macros of Boost.Program_options.
    target_link_libraries(asio_wheel_precompiled PRIVATE
      ${asio_wheel_libraries} Boost::program_options)
    target_precompile_headers(asio_wheel_precompiled PRIVATE <boost/asio.hpp> <asio_wheel.hpp>)
    set_target_properties(asio_wheel_precompiled PROPERTIES CXX_EXTENSIONS OFF)
    asio_wheel_set_warnings(asio_wheel_precompiled)
  endif()
  target_precompile_headers(${target} REUSE_FROM asio_wheel_precompiled)
endfunction()

# asio_wheel_add_program(<name> <source>...): a program that uses the library.
function(asio_wheel_add_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ${asio_wheel_libraries})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  asio_wheel_set_warnings(${name})
endfunction()

# asio_wheel_glob(<out> <folder>...): every .cpp below the folders; a new file needs no edit here.
function(asio_wheel_glob out)
  list(TRANSFORM ARGN APPEND "/*.cpp" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
