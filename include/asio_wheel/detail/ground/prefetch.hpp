// L0 ground: fetches memory ahead of its use.
#pragma once

namespace asio_wheel::detail {

/// Tells the processor that `*p` will be read and written soon. Never faults, whatever `p` is. Does
/// nothing if the compiler has no such hint.
inline void prefetch([[maybe_unused]] const void* p) noexcept
{
#if defined(__GNUC__)
  __builtin_prefetch(p, 1);
#endif
}

}  // namespace asio_wheel::detail
