# The recipe, for Conan 2: conan create packaging/conan -s compiler.cppstd=20. It packages the sources
# that it lies in.
import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

required_conan_version = ">=2.0"


class AsioWheel(ConanFile):
    name = "asio_wheel"
    version = "0.3.0"
    description = "Timeouts for Asio servers on a hashed, hierarchical timing wheel"
    license = "BSL-1.0"
    topics = ("asio", "timer", "timeout", "timing-wheel")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "asio": ["boost", "standalone"]}
    default_options = {"shared": False, "asio": "boost"}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        # A program that uses fmt.hpp links {fmt}, also if the library is shared.
        self.requires("fmt/[>=9]", transitive_headers=True, transitive_libs=True)
        if self.options.asio == "boost":
            self.requires("boost/[>=1.81]", transitive_headers=True)
        else:
            self.requires("asio/[>=1.30]", transitive_headers=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ASIO_WHEEL_ASIO"] = str(self.options.asio)
        toolchain.cache_variables["ASIO_WHEEL_INSTALL"] = True
        for part in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"ASIO_WHEEL_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Conan makes its own.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        standalone = self.options.asio == "standalone"
        self.cpp_info.libs = ["asio_wheel_standalone" if standalone else "asio_wheel"]
        self.cpp_info.set_property("cmake_file_name", "asio_wheel")
        self.cpp_info.set_property(
            "cmake_target_name", "asio_wheel::standalone" if standalone else "asio_wheel::asio_wheel")
        self.cpp_info.requires = ["fmt::fmt", "asio::asio" if standalone else "boost::headers"]
        if standalone:
            self.cpp_info.defines.append("ASIO_WHEEL_STANDALONE")
        if self.options.shared:
            self.cpp_info.defines.append("ASIO_WHEEL_SHARED")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs.append("pthread")
        elif self.settings.os == "Windows":
            self.cpp_info.defines += ["NOMINMAX", "WIN32_LEAN_AND_MEAN"]
            self.cpp_info.system_libs += ["ws2_32", "mswsock"]
