# Fails on an include that points up or to what its floor must not know, on a circle of rooms, and
# on a file in detail/ that is not in namespace asio_wheel::detail.
# cmake -D ROOT=<project> -P layering.cmake
#
#   floor      files of include/asio_wheel and src       may include
#   3 timers   detail/timers/, all other public files    all floors, any library
#   2 engine   detail/engine/, public_files_of_engine    floors 2 to 0, any library
#   1 wheel    detail/wheel/                             floors 1 and 0, std, no clocks, no threads
#   0 base     detail/base/                              floor 0, std, mmap
#
# The wheel must not meet clocks and threads by way of floor 0 either.
# Nobody, tests and examples included, may use what Asio keeps to itself.
# Asio is Boost's or the standalone one: asio.hpp decides, and the other files of the house name
# neither, with the exceptions in files_with_boost.
# What is in src is the inside of the library: include/ must not include it, and src does so by paths
# relative to the file, so that it compiles with include/ alone.
# A room is x.hpp with x.cpp. Rooms must not include one another in a circle, even on one floor.
cmake_minimum_required(VERSION 3.25)

set(floors base wheel engine timers)
set(public_files_of_engine
  abi asio pending_handlers wheel_errc wheel_options wheel_stats wheel_timer_service)
set(clocks_and_threads
  chrono ctime time.h thread mutex shared_mutex condition_variable atomic future semaphore latch
  barrier stop_token stdatomic.h pthread.h threads.h)
set(files_with_boost
  include/asio_wheel/asio.hpp include/asio_wheel/beast.hpp include/asio_wheel/wheel_errc.hpp
  include/asio_wheel/detail/timers/task_set.hpp include/asio_wheel/detail/engine/abi.hpp)
set(failures 0)

# report(<file> <line> <why>)
function(report file line why)
  string(STRIP "${line}" line)
  message(STATUS "${file}: ${line} -- ${why}")
  math(EXPR failures "${failures} + 1")
  set(failures ${failures} PARENT_SCOPE)
endfunction()

# floor_of(<out> <path from ROOT>): 0 to 3, -1 in a folder of the house that the table does not
# name, empty outside of the house.
function(floor_of out path)
  set(floor "")
  if(path MATCHES "^(include/asio_wheel|src)/detail/([^/]+)/")
    list(FIND floors "${CMAKE_MATCH_2}" floor)
  elseif(path MATCHES "^(include/asio_wheel|src)/([^/]+)\\.[a-z]+$")
    set(name "${CMAKE_MATCH_2}")
    set(floor 3)
    if(name IN_LIST public_files_of_engine)
      set(floor 2)
    endif()
  elseif(path MATCHES "^(include/asio_wheel|src)/")
    set(floor -1)
  elseif(path STREQUAL "include/asio_wheel.hpp")
    set(floor 3)
  endif()
  set(${out} "${floor}" PARENT_SCOPE)
endfunction()

# room_of(<out> <path from ROOT>): detail/wheel/chunk for src/detail/wheel/chunk.cpp and its header.
function(room_of out path)
  string(REGEX REPLACE "^(include/asio_wheel|src)/|\\.[a-z]+$" "" room "${path}")
  set(${out} "${room}" PARENT_SCOPE)
endfunction()

# locate(<out> <file> <name>): what <name> included by <file> is, as a path from ROOT, or empty.
function(locate out file name)
  cmake_path(GET file PARENT_PATH folder)
  foreach(base IN ITEMS ${folder} include src)
    cmake_path(SET path NORMALIZE "${base}/${name}")
    if(EXISTS "${ROOT}/${path}")
      set(${out} "${path}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# check_wheel_is_timeless(<file>): follows the includes of a file of floor 1 through the house.
function(check_wheel_is_timeless file)
  set(reached ${file})
  set(seen ${file})
  while(reached)
    list(POP_FRONT reached from)
    file(STRINGS ${ROOT}/${from} lines REGEX "^[ \t]*#[ \t]*include")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE ".*[<\"]([^>\"]+)[>\"].*" "\\1" name "${line}")
      if(name IN_LIST clocks_and_threads)
        report("${file}" "${line}" "no clocks and no threads on floor 1, here by way of ${from}")
      endif()
      locate(target "${from}" "${name}")
      floor_of(target_floor "${target}")
      # What goes up has been reported already.
      if(target AND target_floor LESS 2 AND NOT target IN_LIST seen)
        list(APPEND reached ${target})
        list(APPEND seen ${target})
      endif()
    endforeach()
  endwhile()
  set(failures ${failures} PARENT_SCOPE)
endfunction()

# check_include(<file> <floor of file> <line> <name>): also fills includes_of_<room of file>.
function(check_include file floor line name)
  locate(target "${file}" "${name}")
  floor_of(target_floor "${target}")
  if(name MATCHES "(^|/)asio/detail/")
    report("${file}" "${line}" "Asio's own affair")
  elseif(floor STREQUAL "")
    return()
  elseif(target_floor STREQUAL "" AND name MATCHES "^asio_wheel(/|\\.hpp)")
    report("${file}" "${line}" "no such header")
  elseif(NOT target_floor STREQUAL "")
    room_of(from "${file}")
    room_of(to "${target}")
    if(NOT from STREQUAL to)
      set(includes_of_${from} ${includes_of_${from}} ${to} PARENT_SCOPE)
    endif()
    if(target MATCHES "^src/" AND NOT (file MATCHES "^src/" AND line MATCHES "\""))
      report("${file}" "${line}" "the inside, which src alone includes, by its relative path")
    elseif(target_floor GREATER floor)
      report("${file}" "${line}" "floor ${floor} includes floor ${target_floor}")
    endif()
  elseif(floor EQUAL 0 AND name STREQUAL "sys/mman.h")
    return()
  elseif(floor GREATER 1 AND name MATCHES "^(boost|asio)/" AND NOT line MATCHES "ASIO_WHEEL_ASIO"
         AND NOT file IN_LIST files_with_boost)
    report("${file}" "${line}" "which Asio it is, is for asio_wheel/asio.hpp and ASIO_WHEEL_ASIO()")
  elseif(floor LESS 2 AND name MATCHES "[/.]" AND NOT name MATCHES "^[a-z]+\\.h$")
    report("${file}" "${line}" "floor ${floor} knows the standard library only")
  endif()
  set(failures ${failures} PARENT_SCOPE)
endfunction()

# check_namespace(<file in detail>)
# Exception: a file may forward-declare wheel_timer_service in asio_wheel. recent_wheel.hpp only
# names the class, and including its header would close a circle.
function(check_namespace file)
  file(READ ${ROOT}/${file} text)
  set(space "[ \r\n]*")
  string(REGEX REPLACE
    "\nnamespace asio_wheel${space}{${space}class wheel_timer_service;${space}}" "\n"
    text "\n${text}")
  string(REGEX REPLACE "\nnamespace asio_wheel::detail([ :{\r\n])" "\n\\1" rest "${text}")
  if(rest MATCHES "\nnamespace asio_wheel[^\n]*")
    report("${file}" "${CMAKE_MATCH_0}" "what is in detail/ is in namespace asio_wheel::detail")
  elseif(rest STREQUAL text AND text MATCHES "\n[A-Za-z][^\n]*")
    report("${file}" "${CMAKE_MATCH_0}" "no namespace asio_wheel::detail in this file of detail/")
  endif()
  set(failures ${failures} PARENT_SCOPE)
endfunction()

# check_circles(): two rooms are in the same circle if each reaches the other through includes.
function(check_circles)
  list(REMOVE_DUPLICATES rooms)
  list(SORT rooms)
  foreach(room IN LISTS rooms)
    set(reached "")
    set(next ${includes_of_${room}})
    while(NOT "${next}" STREQUAL "")
      list(POP_FRONT next via)
      if(NOT via IN_LIST reached)
        list(APPEND reached ${via})
        list(APPEND next ${includes_of_${via}})
      endif()
    endwhile()
    set(reached_from_${room} ${reached})
  endforeach()

  set(reported "")
  foreach(room IN LISTS rooms)
    if(room IN_LIST reported OR NOT room IN_LIST reached_from_${room})
      continue()
    endif()
    set(circle "")
    foreach(other IN LISTS reached_from_${room})
      if(room IN_LIST reached_from_${other})
        list(APPEND circle ${other})
      endif()
    endforeach()
    list(APPEND reported ${circle})
    list(SORT circle)
    list(JOIN circle ", " names)
    report("circle" "${names}" "rooms that include one another")
    foreach(from IN LISTS circle)
      foreach(to IN LISTS circle)
        if(to IN_LIST includes_of_${from})
          message(STATUS "  ${from} includes ${to}")
        endif()
      endforeach()
    endforeach()
  endforeach()
  set(failures ${failures} PARENT_SCOPE)
endfunction()

set(patterns "")
foreach(folder IN ITEMS include src test examples bench)
  list(APPEND patterns ${ROOT}/${folder}/*.hpp ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.ipp)
endforeach()
file(GLOB_RECURSE files RELATIVE ${ROOT} ${patterns})
list(FILTER files EXCLUDE REGEX "(^|/)build/")

set(in_house 0)
set(rooms "")
foreach(file IN LISTS files)
  floor_of(floor ${file})
  if(NOT floor STREQUAL "")
    math(EXPR in_house "${in_house} + 1")
    room_of(room ${file})
    list(APPEND rooms ${room})
  endif()
  if(floor STREQUAL "-1")
    report("${file}" "" "on no floor")
    continue()
  endif()
  if(file MATCHES "^(include/asio_wheel|src)/detail/")
    check_namespace(${file})
  endif()
  if(floor STREQUAL "1")
    check_wheel_is_timeless(${file})
  endif()
  file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include|asio::detail|boost::")
  foreach(line IN LISTS lines)
    if(line MATCHES "#[ \t]*include[ \t]*[<\"]([^>\"]+)")
      check_include("${file}" "${floor}" "${line}" "${CMAKE_MATCH_1}")
    elseif(line MATCHES "#[ \t]*include[ \t]*ASIO_WHEEL_ASIO\\(([^)]+)")
      check_include("${file}" "${floor}" "${line}" "asio/${CMAKE_MATCH_1}")
    else()
      string(REGEX REPLACE "//.*" "" code "${line}")
      if(floor GREATER 1 AND code MATCHES "boost::" AND NOT file IN_LIST files_with_boost)
        report("${file}" "${line}" "asio::, error_code and the like are either Asio's")
      endif()
      if(code MATCHES "(^|[^a-z_])asio::detail")
        report("${file}" "${line}" "Asio's own affair")
      endif()
    endif()
  endforeach()
endforeach()
check_circles()

if(failures GREATER 0)
  message(FATAL_ERROR "${failures} forbidden")
elseif(in_house EQUAL 0)
  message(FATAL_ERROR "nothing to look at in ${ROOT}")
endif()
list(LENGTH files looked_at)
message(STATUS
  "${looked_at} files, ${in_house} of them in the house: no include points up, no circles")
