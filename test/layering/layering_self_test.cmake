# Builds small trees that break one rule each, and demands that layering.cmake refuses them.
# cmake -D SCRATCH=<folder to overwrite> -P layering_self_test.cmake
cmake_minimum_required(VERSION 3.25)

set(house include/asio_wheel)

# verdict(<out> <path> <line>): what layering.cmake says of a sound tree with <line> in <path>.
function(verdict out path line)
  file(REMOVE_RECURSE ${SCRATCH})
  foreach(sound IN ITEMS asio_wheel.hpp asio_wheel/wheel_timer.hpp asio_wheel/service/shard.hpp
      asio_wheel/wheel/timing_wheel.hpp asio_wheel/ground/tick.hpp)
    file(WRITE ${SCRATCH}/include/${sound} "#pragma once\n")
  endforeach()
  file(WRITE ${SCRATCH}/${house}/ground/clock.hpp "#include <chrono>\n")
  file(WRITE ${SCRATCH}/src/wheel/levels.hpp "#pragma once\n")
  file(APPEND ${SCRATCH}/${path} "${line}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/layering.cmake
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0)
    set(${out} "accepted" PARENT_SCOPE)
  else()
    set(${out} "${output}" PARENT_SCOPE)
  endif()
endfunction()

function(refuses path line why)
  verdict(said "${path}" "${line}")
  if(NOT said MATCHES "${why}" OR NOT said MATCHES "1 forbidden")
    message(SEND_ERROR "${path}: ${line}: wanted '${why}', layering.cmake said: ${said}")
  endif()
endfunction()

function(accepts path line)
  verdict(said "${path}" "${line}")
  if(NOT said STREQUAL "accepted")
    message(SEND_ERROR "${path}: ${line}: wanted acceptance, layering.cmake said: ${said}")
  endif()
endfunction()

refuses(${house}/ground/tick.hpp "#include <asio_wheel/wheel/timing_wheel.hpp>" "includes floor 1")
refuses(${house}/wheel/timing_wheel.hpp "#include <asio_wheel/service/shard.hpp>" "includes floor 2")
refuses(${house}/wheel/timing_wheel.hpp "#  include \"../wheel_timer.hpp\"" "includes floor 3")
refuses(${house}/service/shard.hpp "#include <asio_wheel.hpp>" "includes floor 3")
refuses(src/wheel/timing_wheel.cpp "#include <asio_wheel/service/shard.hpp>" "includes floor 2")
refuses(src/service/shard.cpp "#include \"asio_wheel/wheel_timer.hpp\"" "includes floor 3")
refuses(${house}/wheel/timing_wheel.hpp "#include <boost/asio/error.hpp>" "standard library only")
refuses(${house}/wheel/timing_wheel.hpp "#include <fmt/format.h>" "standard library only")
refuses(${house}/wheel/timing_wheel.hpp "#include <chrono>" "no clocks")
refuses(${house}/wheel/by_ground.hpp "#include <asio_wheel/ground/clock.hpp>" "ground/clock.hpp")
refuses(src/wheel/timing_wheel.cpp "#include <mutex> // only here" "no threads")
refuses(${house}/wheel_timer.hpp "#include <boost/asio/detail/op_queue.hpp>" "own affair")
refuses(${house}/wheel_timer.hpp "using asio::detail::op_queue;" "own affair")
refuses(test/unit/roof/wheel_timer.cpp "boost::asio::detail::mutex m;" "own affair")
refuses(src/wheel/timing_wheel.cpp "#include <asio_wheel/wheel/misspelt.hpp>" "no such header")

accepts(${house}/ground/tick.hpp "#include <limits>")
accepts(${house}/wheel/timing_wheel.hpp "#include <asio_wheel/ground/tick.hpp>")
accepts(src/wheel/timing_wheel.cpp "#include \"levels.hpp\"")
accepts(${house}/ground/clock.hpp "#include <thread>")
accepts(${house}/service/shard.hpp "#include <mutex>")
accepts(${house}/service/shard.hpp "#include <boost/asio/strand.hpp>")
accepts(${house}/wheel_timer.hpp "#include <asio_wheel/service/shard.hpp>")
accepts(${house}/wheel_timer.hpp "asio_wheel::detail::access a; // not asio::detail")

# An empty tree is a mistake in the call, not a clean house.
file(REMOVE_RECURSE ${SCRATCH})
execute_process(
  COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/layering.cmake
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)
  message(SEND_ERROR "layering.cmake accepts a tree without a single file")
endif()
