# What `cmake --install` and CPack put where, and how CMake and pkg-config find it there. The library
# on Boost.Asio and the one on the standalone Asio share their headers, and may be installed to one
# place from one build or from two.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/asio_wheel)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/asio_wheel-config.cmake.in asio_wheel-config.cmake
  INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(asio_wheel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/asio_wheel-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/asio_wheel-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/asio_wheel_find_asio.cmake
  DESTINATION ${config_dir})

# The prefix is found from where the file lies, so that the tree can be moved.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  NORMALIZE OUTPUT_VARIABLE pkgconfig_dir)
cmake_path(APPEND pkgconfig_dir pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pkgconfig_dir}
  OUTPUT_VARIABLE pkgconfig_to_prefix)

# asio_wheel_install(<target> <macro prefix of its Asio> <flag of the compiler>...)
function(asio_wheel_install target prefix)
  install(TARGETS ${target} EXPORT ${target}_targets
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${target}_targets NAMESPACE asio_wheel:: DESTINATION ${config_dir})

  set(flags ${ARGN})
  if(BUILD_SHARED_LIBS)
    list(APPEND flags -DASIO_WHEEL_SHARED)
  endif()
  if(ASIO_WHEEL_SEPARATE_ASIO)
    list(APPEND flags -D${prefix}_SEPARATE_COMPILATION)
  endif()
  if(ASIO_WHEEL_ON_MINGW_PTHREADS)
    list(APPEND flags -D${prefix}_HAS_PTHREADS=1)
  endif()
  if(ASIO_WHEEL_ASIO_INCLUDE_DIR)
    list(APPEND flags "-isystem ${ASIO_WHEEL_ASIO_INCLUDE_DIR}")
  endif()
  list(JOIN flags " " pkgconfig_cflags)
  set(pkgconfig_name ${target})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/asio_wheel.pc.in ${target}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${target}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libfmt-dev (>= 9)")
if(TARGET asio_wheel)
  asio_wheel_install(asio_wheel BOOST_ASIO)
  set(CPACK_PACKAGE_NAME libasio-wheel-dev)
  # The library and its users must see the same Boost.
  set(boost ${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR})
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libboost${boost}-dev | libboost-dev (>= ${boost})")
else()
  # The headers are the same files, so one package or the other; with ASIO_WHEEL_ASIO=both, one has
  # both libraries.
  set(CPACK_PACKAGE_NAME libasio-wheel-standalone-dev)
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS libasio-wheel-dev)
endif()
if(TARGET asio_wheel_standalone)
  asio_wheel_install(asio_wheel_standalone ASIO -DASIO_WHEEL_STANDALONE)
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libasio-dev (>= 1:1.30)")
endif()

set(CPACK_PACKAGE_CONTACT "asio_wheel maintainers <maintainers@asio-wheel.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF) # of a static library nothing would be left to link
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/asio_wheel_cpack.cmake)
include(CPack)
