# The port, for an overlay: vcpkg install asio-wheel --classic --overlay-ports=packaging/vcpkg
# (--classic, as the vcpkg.json of this project is for its own builds).
# It builds the sources that it lies in. vcpkg does not see that they have changed: then
# vcpkg remove asio-wheel first, and install it with --no-binarycaching. For vcpkg's registry,
# vcpkg_from_github() takes the place of this line.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

if("boost" IN_LIST FEATURES AND "standalone" IN_LIST FEATURES)
  set(asio both)
elseif("standalone" IN_LIST FEATURES)
  set(asio standalone)
elseif("boost" IN_LIST FEATURES)
  set(asio boost)
else()
  message(FATAL_ERROR "asio-wheel needs an Asio: the feature boost, standalone, or both")
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
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
