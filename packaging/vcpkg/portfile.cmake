# The port, for an overlay: vcpkg install asio-wheel --overlay-ports=packaging/vcpkg
# It builds the sources that it lies in. For vcpkg's registry, vcpkg_from_github() takes the place of
# this line.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

if("boost" IN_LIST FEATURES AND "standalone" IN_LIST FEATURES)
  set(asio both)
elseif("standalone" IN_LIST FEATURES)
  set(asio standalone)
else()
  set(asio boost)
endif()

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DASIO_WHEEL_ASIO=${asio}
    -DASIO_WHEEL_INSTALL=ON
    -DASIO_WHEEL_BUILD_TESTS=OFF
    -DASIO_WHEEL_BUILD_EXAMPLES=OFF
    -DASIO_WHEEL_BUILD_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME asio_wheel CONFIG_PATH lib/cmake/asio_wheel)
vcpkg_fixup_pkgconfig()
vcpkg_copy_pdbs()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
