# Builds small trees that break one rule each, and demands that layering.cmake refuses them.
# cmake -D SCRATCH=<folder to overwrite> -P layering_self_test.cmake
cmake_minimum_required(VERSION 3.25)

set(public include/asio_wheel)
set(house ${public}/detail)

# verdict(<out> <path> <text>): what layering.cmake says of a sound tree with <text> added to
# <path>. In this tree, one more include can close a circle.
function(verdict out path text)
  file(REMOVE_RECURSE ${SCRATCH})
  foreach(sound IN ITEMS asio_wheel.hpp asio_wheel/wheel_timer.hpp asio_wheel/wheel_errc.hpp
      asio_wheel/detail/timers/token.hpp asio_wheel/detail/engine/shard.hpp
      asio_wheel/detail/engine/driver.hpp asio_wheel/detail/wheel/timing_wheel.hpp
      asio_wheel/detail/base/tick.hpp)
    file(WRITE ${SCRATCH}/include/${sound} "#pragma once\n")
  endforeach()
  file(WRITE ${SCRATCH}/${house}/base/clock.hpp "#include <chrono>\n")
  file(WRITE ${SCRATCH}/src/detail/wheel/levels.hpp "#pragma once\n")
  file(WRITE ${SCRATCH}/src/detail/engine/driver.hpp "#pragma once\n")
  file(WRITE ${SCRATCH}/src/detail/engine/shard.cpp
    "#include <asio_wheel/detail/engine/shard.hpp>\n"
    "#include <asio_wheel/detail/engine/driver.hpp>\n")
  file(WRITE ${SCRATCH}/${public}/first.hpp "#include <asio_wheel/second.hpp>\n")
  file(WRITE ${SCRATCH}/${public}/second.hpp "#include <asio_wheel/third.hpp>\n")
  file(WRITE ${SCRATCH}/${public}/third.hpp "#include <asio_wheel/wheel_timer.hpp>\n")
  file(APPEND ${SCRATCH}/${path} "${text}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/layering.cmake
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0)
    set(${out} "accepted" PARENT_SCOPE)
  else()
    set(${out} "${output}" PARENT_SCOPE)
  endif()
endfunction()

function(refuses path text why)
  verdict(said "${path}" "${text}")
  if(NOT said MATCHES "${why}" OR NOT said MATCHES "1 forbidden")
    message(SEND_ERROR "${path}: ${text}: wanted '${why}', layering.cmake said: ${said}")
  endif()
endfunction()

function(accepts path text)
  verdict(said "${path}" "${text}")
  if(NOT said STREQUAL "accepted")
    message(SEND_ERROR "${path}: ${text}: wanted acceptance, layering.cmake said: ${said}")
  endif()
endfunction()

# Includes that point up.
refuses(${house}/base/tick.hpp "#include <asio_wheel/detail/wheel/timing_wheel.hpp>"
  "includes floor 1")
refuses(${house}/wheel/timing_wheel.hpp "#include <asio_wheel/detail/engine/shard.hpp>"
  "includes floor 2")
refuses(${house}/wheel/timing_wheel.hpp "#include <asio_wheel/wheel_errc.hpp>" "includes floor 2")
refuses(${house}/wheel/timing_wheel.hpp "#  include \"../../wheel_timer.hpp\"" "includes floor 3")
refuses(${house}/engine/shard.hpp "#include <asio_wheel/detail/timers/token.hpp>" "includes floor 3")
refuses(${house}/engine/shard.hpp "#include <asio_wheel.hpp>" "includes floor 3")
refuses(${public}/wheel_errc.hpp "#include <asio_wheel/detail/timers/token.hpp>"
  "floor 2 includes floor 3")
refuses(src/wheel_errc.cpp "#include <asio_wheel/wheel_timer.hpp>" "floor 2 includes floor 3")
refuses(src/detail/wheel/timing_wheel.cpp "#include <asio_wheel/detail/engine/shard.hpp>"
  "includes floor 2")
refuses(src/detail/engine/shard.cpp "#include \"asio_wheel/wheel_timer.hpp\"" "includes floor 3")

accepts(${house}/wheel/timing_wheel.hpp "#include <asio_wheel/detail/base/tick.hpp>")
accepts(src/detail/wheel/timing_wheel.cpp "#include \"levels.hpp\"")
accepts(${house}/engine/shard.hpp "#include <asio_wheel/wheel_errc.hpp>")
accepts(${house}/timers/token.hpp "#include <asio_wheel/wheel_timer.hpp>")
accepts(${public}/wheel_timer.hpp "#include <asio_wheel/detail/engine/shard.hpp>")

# What is in src.
refuses(${public}/wheel_timer.hpp "#include <detail/wheel/levels.hpp>" "the inside")
refuses(${house}/wheel/timing_wheel.hpp "#include \"../../../../src/detail/wheel/levels.hpp\""
  "the inside")
refuses(src/detail/wheel/timing_wheel.cpp "#include <detail/wheel/levels.hpp>" "the inside")
refuses(src/detail/wheel/levels.hpp "#include \"../engine/driver.hpp\"" "includes floor 2")

accepts(src/detail/engine/driver.hpp "#include \"../wheel/levels.hpp\"")

# Includes that the floor must not know.
refuses(${house}/wheel/timing_wheel.hpp "#include <boost/asio/error.hpp>" "standard library only")
refuses(${house}/wheel/timing_wheel.hpp "#include <fmt/format.h>" "standard library only")
refuses(${house}/wheel/timing_wheel.hpp "#include <chrono>" "no clocks")
refuses(${house}/wheel/by_base.hpp "#include <asio_wheel/detail/base/clock.hpp>"
  "base/clock.hpp")
refuses(src/detail/wheel/timing_wheel.cpp "#include <mutex> // only here" "no threads")
refuses(${public}/wheel_timer.hpp "#include <boost/asio/detail/op_queue.hpp>" "own affair")
refuses(${public}/wheel_timer.hpp "using asio::detail::op_queue;" "own affair")
refuses(test/unit/timers/wheel_timer.cpp "boost::asio::detail::mutex m;" "own affair")
refuses(${house}/engine/shard.hpp "#include <boost/asio/strand.hpp>" "which Asio it is")
refuses(${house}/engine/shard.hpp "#include <asio/strand.hpp>" "which Asio it is")
refuses(${house}/engine/shard.hpp "#include ASIO_WHEEL_ASIO(detail/mutex.hpp)" "own affair")
refuses(${house}/wheel/timing_wheel.hpp "#include ASIO_WHEEL_ASIO(error.hpp)"
  "standard library only")
refuses(${public}/wheel_timer.hpp "boost::asio::io_context c;" "either Asio's")
refuses(src/detail/wheel/timing_wheel.cpp "#include <asio_wheel/detail/wheel/misspelt.hpp>"
  "no such header")

accepts(${house}/base/tick.hpp "#include <limits>")
accepts(${house}/base/clock.hpp "#include <thread>")
accepts(${house}/engine/shard.hpp "#include <mutex>")
accepts(${house}/engine/shard.hpp "#include ASIO_WHEEL_ASIO(strand.hpp)")
accepts(${public}/wheel_timer.hpp "asio_wheel::detail::access a; // not asio::detail")

# Files in the house that are on no floor.
refuses(${public}/wheel/chunk.hpp "#pragma once" "on no floor")
refuses(${house}/chunk.hpp "#pragma once" "on no floor")
refuses(src/detail/cellar/chunk.cpp "#include <vector>" "on no floor")

# Circles: the message names all rooms of the circle, and no others.
refuses(${house}/engine/driver.hpp "#include <asio_wheel/detail/engine/shard.hpp>"
  "circle: detail/engine/driver, detail/engine/shard --")
refuses(${public}/third.hpp "#include <asio_wheel/first.hpp>" "circle: first, second, third --")
refuses(src/third.cpp "#include <asio_wheel/first.hpp>" "circle: first, second, third --")
refuses(${public}/second.hpp "#include \"first.hpp\"" "circle: first, second --")

accepts(${public}/first.hpp "#include <asio_wheel/third.hpp>")
accepts(src/detail/engine/driver.cpp "#include <asio_wheel/detail/engine/driver.hpp>")

# Files in detail/ outside of namespace asio_wheel::detail.
set(outside "in namespace asio_wheel::detail")
set(inside "namespace asio_wheel::detail {\n}")
refuses(${house}/engine/shard.hpp "namespace asio_wheel {\n}" "${outside}")
refuses(${house}/engine/shard.hpp "${inside}\nnamespace asio_wheel {\nclass shard;\n}"
  "${outside}")
refuses(${house}/engine/shard.hpp "namespace asio_wheel\n{\n}" "${outside}")
refuses(src/detail/wheel/chunk.cpp "namespace asio_wheel::details {\n}" "${outside}")
refuses(${house}/base/tick.hpp "struct tick;" "no namespace asio_wheel::detail")

accepts(${house}/base/tick.hpp "// says nothing but\n#define ASIO_WHEEL_EXPORT")
accepts(src/detail/wheel/chunk.cpp "${inside}\nnamespace boost::asio {\n}")
accepts(${public}/wheel_timer.hpp "namespace asio_wheel {\n}")

# An empty tree is a mistake in the call, not a clean house.
file(REMOVE_RECURSE ${SCRATCH})
execute_process(
  COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/layering.cmake
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)
  message(SEND_ERROR "layering.cmake accepts a tree without a single file")
endif()
