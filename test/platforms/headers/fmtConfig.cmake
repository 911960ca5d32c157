# fmt for a cross build: its headers alone. See ../cross.sh.
set(fmt_FOUND TRUE)
if(NOT TARGET fmt::fmt)
  add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
  set_target_properties(fmt::fmt PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/include
    INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY)
endif()
