// L0 base: what the compiler must support. Every public header includes this header first.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error asio_wheel needs C++20 or newer: compile with -std=c++20
#define ASIO_WHEEL_STOP
#elif !defined(__cpp_exceptions)
#error asio_wheel needs exceptions: compile without -fno-exceptions
#define ASIO_WHEEL_STOP
#endif

// A missing header ends the compilation. #error alone lets it go on to hundreds of errors.
#if defined(ASIO_WHEEL_STOP)
#include <asio_wheel_stop>
#endif
