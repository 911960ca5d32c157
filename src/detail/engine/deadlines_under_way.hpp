// L2 engine: deadlines on their way through strands, and whether handlers have begun there.
#pragma once

#include <asio_wheel/asio.hpp>

#include "../base/locks.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// The strands that deadlines of operations are on their way to. A handler that has destroyed an
/// operation's object has run on the operation's strand, if several threads run the context. So a
/// deadline needs to know of the handlers that have begun there, and of no others: in a busy
/// program some handler begins somewhere all the time.
///
/// Only for strands of Asio's own, and for a few deadlines at a time. Thread-safe.
class deadlines_under_way {
public:
  /// Where a deadline stands here; 0 for a deadline that does not.
  using place = std::uint8_t;

  /// A deadline sets out. Returns 0 if there is no place for it, or if `ex` is no strand.
  [[nodiscard]] place add(asio::any_io_executor ex) noexcept;

  /// A deadline has ended its way. Empties `p`.
  void remove(place& p) noexcept;

  /// Returns true if a handler has begun on the strand since the last call. Requires a place.
  [[nodiscard]] bool take_begun(place p) noexcept;

  /// A handler of the wheel is about to begin in this thread.
  void note_begun() noexcept
  {
    if (size_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      note_for_all();
  }

private:
  static constexpr std::size_t most = 128;  ///< what two deliveries send out

  struct entry {
    asio::any_io_executor strand;  ///< none in a free place
    bool begun = false;
  };

  [[gnu::noinline, gnu::cold]] void note_for_all() noexcept;

  std::atomic<std::size_t> size_{0};
  spin_lock mutex_;
  std::array<entry, most> all_ ASIO_WHEEL_GUARDED_BY(mutex_);
};

}  // namespace asio_wheel::detail
