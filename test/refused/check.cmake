# Compiles one case of refused.cpp: -D compiler, source, include, case. The deadline's cases say why, and
# the first error of the others is in the user's file.
execute_process(
  COMMAND ${compiler} -std=c++20 -fsyntax-only ${include} -DREFUSED=${case} ${source}
  RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_QUIET)
if(case EQUAL 0)
  if(failed)
    message(FATAL_ERROR "does not compile without a fault:\n${said}")
  endif()
elseif(NOT failed)
  message(FATAL_ERROR "case ${case} compiles")
elseif(case LESS 10)
  if(NOT said MATCHES "bind_cancellation_slot hides the operation from a deadline")
    message(FATAL_ERROR "case ${case} is refused for another reason:\n${said}")
  endif()
else()
  string(REGEX MATCH "[^\n]*:[0-9]+:[0-9]+: error:" first "${said}")
  if(NOT first MATCHES "refused.cpp:")
    message(FATAL_ERROR "the first error of case ${case} is not in the user's file: ${first}")
  endif()
endif()
