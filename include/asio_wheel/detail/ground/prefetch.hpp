// L0 ground: asking for memory ahead of its use.
#pragma once

namespace asio_wheel::detail {

/// A hint that `*p` is about to be read and written. Never faults, whatever `p` is; does nothing
/// where the compiler has no such hint. It is an object because Boost's containers call their own
/// prefetch() unqualified, and for elements of ours would find a function as well.
inline constexpr auto prefetch = []([[maybe_unused]] const void* p) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(p, 1);
#endif
};

}  // namespace asio_wheel::detail
