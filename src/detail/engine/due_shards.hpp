// L2 engine: in which shard the next wait is due.
#pragma once

#include "shard.hpp"
#include "shard_table.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// The shards in which waits are due, first the one whose first wait comes before those of all
/// others.
///
/// By tick, that is. As long as all waits of a thread are in one shard, nobody can tell in which
/// order those of a tick are taken from different shards, so they are taken shard by shard. Once
/// there is a stray (shard_table::has_strays), they are taken in the order of their starts.
///
/// Waits that are due stay in their shards until they begin, where whoever cancels them finds them,
/// and every thread of the context takes the next one. Here is only where that is: a heap of what
/// is known of each shard's first wait. That wait may be gone by now, so the shard may come later
/// than it seems, never earlier. It finds its place when it is in front.
///
/// Its owner's lock is taken before those of the shards.
class due_shards {
public:
  explicit due_shards(const shard_table& shards) noexcept : shards_(shards) {}

  [[nodiscard]] bool empty() const noexcept;

  /// Something is due in that shard.
  void add(shard& sh) noexcept;

  /// Locks the shard whose first wait comes next, and says which. False if nothing is due.
  [[nodiscard]] bool lock_first(shard*& first) noexcept ASIO_WHEEL_TRY_ACQUIRE(true, first);

  /// Nothing is due any more in the shard that lock_first() has returned.
  void drop_first() noexcept;

  /// The shards were rewound, so their first waits may come earlier than is known: each is to find
  /// its place anew.
  void rewound() noexcept;

private:
  struct source {
    due_key first;  ///< not after that of the shard's first wait
    shard* at;
  };
  [[nodiscard]] static bool comes_later(const source& a, const source& b) noexcept
  {
    return b.first < a.first;
  }

  const shard_table& shards_;
  std::size_t size_ = 0;
  std::uint64_t is_here_ = 0;  ///< a bit for each shard
  std::array<source, max_shards> heap_;
};

}  // namespace asio_wheel::detail
