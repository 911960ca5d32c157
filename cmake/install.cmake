# What `cmake --install` and CPack put where, and how CMake and pkg-config find it there.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/asio_wheel)

install(TARGETS asio_wheel EXPORT asio_wheel_targets
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT asio_wheel_targets NAMESPACE asio_wheel:: DESTINATION ${config_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/asio_wheel-config.cmake.in asio_wheel-config.cmake
  INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(asio_wheel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/asio_wheel-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/asio_wheel-config-version.cmake
  DESTINATION ${config_dir})

# The prefix is found from where the file lies, so that the tree can be moved.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  NORMALIZE OUTPUT_VARIABLE pkgconfig_dir)
cmake_path(APPEND pkgconfig_dir pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pkgconfig_dir}
  OUTPUT_VARIABLE pkgconfig_to_prefix)
set(pkgconfig_cflags "")
if(BUILD_SHARED_LIBS)
  string(APPEND pkgconfig_cflags " -DASIO_WHEEL_SHARED")
endif()
if(ASIO_WHEEL_SEPARATE_ASIO)
  string(APPEND pkgconfig_cflags " -DBOOST_ASIO_SEPARATE_COMPILATION")
endif()
if(ASIO_WHEEL_ASIO_INCLUDE_DIR)
  string(APPEND pkgconfig_cflags " -isystem ${ASIO_WHEEL_ASIO_INCLUDE_DIR}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/asio_wheel.pc.in asio_wheel.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/asio_wheel.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libasio-wheel-dev)
set(CPACK_PACKAGE_CONTACT "asio_wheel maintainers <maintainers@asio-wheel.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF) # of a static library nothing would be left to link
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libboost1.81-dev | libboost-dev (>= 1.81), libfmt-dev (>= 9)")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
