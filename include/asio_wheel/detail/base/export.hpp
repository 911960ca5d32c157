// L0 base: ASIO_WHEEL_EXPORT marks what the shared library exports.
#pragma once

#if !defined(ASIO_WHEEL_SHARED)
#define ASIO_WHEEL_EXPORT
#elif !defined(_WIN32)
#define ASIO_WHEEL_EXPORT __attribute__((visibility("default")))
#elif defined(ASIO_WHEEL_BUILDING)
#define ASIO_WHEEL_EXPORT __declspec(dllexport)
#else
#define ASIO_WHEEL_EXPORT __declspec(dllimport)
#endif
