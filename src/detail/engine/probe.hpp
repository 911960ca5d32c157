// L2 engine: static probes for tracers (USDT), in builds with ASIO_WHEEL_USDT.
#pragma once

// ASIO_WHEEL_PROBE(name, ...): the probe asio_wheel:name with three arguments. A nop in the code,
// with a note that tells a tracer of the nop and the arguments; without ASIO_WHEEL_USDT, nothing at
// all. doc/observing.md lists the probes.
#if defined(ASIO_WHEEL_USDT)
#include <sys/sdt.h>
#define ASIO_WHEEL_PROBE(name, a, b, c) DTRACE_PROBE3(asio_wheel, name, a, b, c)
#else
#define ASIO_WHEEL_PROBE(name, a, b, c) static_cast<void>(0)
#endif

namespace asio_wheel::detail {

/// For work that only a probe needs.
#if defined(ASIO_WHEEL_USDT)
inline constexpr bool has_probes = true;
#else
inline constexpr bool has_probes = false;
#endif

}  // namespace asio_wheel::detail
