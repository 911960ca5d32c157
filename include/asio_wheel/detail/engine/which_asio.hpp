// L2 engine: decides if Asio is Boost's or the standalone Asio.
#pragma once

// ASIO_WHEEL_STANDALONE comes with the CMake target asio_wheel::standalone; a library and a program
// must agree on it (abi.hpp).
#if defined(ASIO_WHEEL_STANDALONE)
#define ASIO_WHEEL_ASIO(header) <asio/header>
#else
#define ASIO_WHEEL_ASIO(header) <boost/asio/header>
#endif
