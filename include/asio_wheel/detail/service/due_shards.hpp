// L2 service: the order in which what is due is taken from several shards.
#pragma once

#include <asio_wheel/detail/service/home.hpp>
#include <asio_wheel/detail/service/shard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// The shards in which waits are due, first the one whose first wait comes before those of all
/// others.
///
/// Waits that are due stay in their shards until they begin, where whoever cancels them finds them,
/// and every thread of the context takes the next one. Here is only where that is: a heap of what
/// is known of each shard's first wait. That wait may be gone by now, so the shard may come later
/// than it seems, never earlier. It finds its place when it is in front.
///
/// Guarded by the lock of its owner, which is taken before those of the shards.
class due_shards {
public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Something is due in that shard.
  void add(home& h) noexcept;

  /// Locks the shard whose first wait comes next, and returns it; null if nothing is due.
  [[nodiscard]] home* lock_first() noexcept;

  /// Nothing is due any more in the shard that lock_first() has returned.
  void drop_first() noexcept;

private:
  struct source {
    due_key first;  ///< not after that of the shard's first wait
    home* at;
  };
  [[nodiscard]] static bool comes_later(const source& a, const source& b) noexcept
  {
    return b.first < a.first;
  }

  std::array<source, max_shards> heap_;
  std::size_t size_ = 0;
  std::uint64_t is_here_ = 0;  ///< a bit for each shard
};

}  // namespace asio_wheel::detail
