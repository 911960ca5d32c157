// L0 ground: what a compiler has to be able to do. Every public header includes this one first.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error asio_wheel needs C++20 or newer: compile with -std=c++20
#define ASIO_WHEEL_STOP
#elif !defined(__cpp_exceptions)
#error asio_wheel needs exceptions: compile without -fno-exceptions
#define ASIO_WHEEL_STOP
#endif

// A header that is not there ends the compilation; #error alone goes on to hundreds of errors.
#if defined(ASIO_WHEEL_STOP)
#include <asio_wheel_stop>
#endif
