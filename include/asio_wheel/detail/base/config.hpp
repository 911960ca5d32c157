// L0 base: what the compiler must support, and macros for what it may. Every public header includes
// this header first.
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

// Names a header of Asio, Boost's or the standalone Asio. ASIO_WHEEL_STANDALONE comes with the
// CMake target asio_wheel::standalone; a library and a program must agree on it (abi.hpp).
#if defined(ASIO_WHEEL_STANDALONE)
#define ASIO_WHEEL_ASIO(header) <asio/header>
#else
#define ASIO_WHEEL_ASIO(header) <boost/asio/header>
#endif

// Marks what the shared library exports.
#if !defined(ASIO_WHEEL_SHARED)
#define ASIO_WHEEL_EXPORT
#elif !defined(_WIN32)
#define ASIO_WHEEL_EXPORT __attribute__((visibility("default")))
#elif defined(ASIO_WHEEL_BUILDING)
#define ASIO_WHEEL_EXPORT __declspec(dllexport)
#else
#define ASIO_WHEEL_EXPORT __declspec(dllimport)
#endif

// The rest tells Clang's -Wthread-safety about locks, and nothing to other compilers.
#if defined(__clang__)
#define ASIO_WHEEL_ATTRIBUTE(x) __attribute__((x))
#else
#define ASIO_WHEEL_ATTRIBUTE(x)
#endif

// For classes and members.
#define ASIO_WHEEL_LOCK ASIO_WHEEL_ATTRIBUTE(capability("lock"))
#define ASIO_WHEEL_SCOPED_LOCK ASIO_WHEEL_ATTRIBUTE(scoped_lockable)
#define ASIO_WHEEL_GUARDED_BY(lock) ASIO_WHEEL_ATTRIBUTE(guarded_by(lock))

// For functions: the lock that they require, exclude, take, release or return.
#define ASIO_WHEEL_REQUIRES(lock) ASIO_WHEEL_ATTRIBUTE(requires_capability(lock))
#define ASIO_WHEEL_EXCLUDES(lock) ASIO_WHEEL_ATTRIBUTE(locks_excluded(lock))
#define ASIO_WHEEL_ACQUIRE(...) ASIO_WHEEL_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ASIO_WHEEL_TRY_ACQUIRE(...) ASIO_WHEEL_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define ASIO_WHEEL_RELEASE(...) ASIO_WHEEL_ATTRIBUTE(release_capability(__VA_ARGS__))
#define ASIO_WHEEL_RETURNS(lock) ASIO_WHEEL_ATTRIBUTE(lock_returned(lock))

// What Clang must believe: that a lock is held, or that all is well. The latter needs a reason.
#define ASIO_WHEEL_ASSERTS(lock) ASIO_WHEEL_ATTRIBUTE(assert_capability(lock))
#define ASIO_WHEEL_NO_LOCK_ANALYSIS ASIO_WHEEL_ATTRIBUTE(no_thread_safety_analysis)
