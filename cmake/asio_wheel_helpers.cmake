# Functions shared by the library, its tests, examples and benchmarks.

# Warnings are for work on this project, not for projects that add it as a subdirectory.
function(asio_wheel_set_warnings target)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  if(ASIO_WHEEL_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# asio_wheel_add_program(<name> <source>...): a program that uses the library.
function(asio_wheel_add_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE asio_wheel::asio_wheel)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  asio_wheel_set_warnings(${name})
endfunction()

# asio_wheel_glob(<out> <folder>...): every .cpp below the folders; a new file needs no edit here.
function(asio_wheel_glob out)
  list(TRANSFORM ARGN APPEND "/*.cpp" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
