// L0 ground: asking for memory ahead of its use.
#pragma once

namespace asio_wheel::detail {

/// A hint that `*p` is about to be read and written. Never faults, whatever `p` is; does nothing
/// where the compiler has no such hint. An object: Boost's containers call a prefetch() of their
/// own, and would find a function for elements of ours, too.
inline constexpr auto prefetch = []([[maybe_unused]] const void* p) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(p, 1);
#endif
};

}  // namespace asio_wheel::detail
