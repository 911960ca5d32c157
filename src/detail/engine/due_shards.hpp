// L2 engine: in which shard the next wait is due.
#pragma once

#include "shard.hpp"
#include "shard_table.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// The shards in which waits are due, ordered by each shard's first wait.
///
/// The order is by tick. As long as all waits of a thread are in one shard, nobody can tell the
/// order of waits of one tick in different shards, so they are taken shard by shard. Once there is
/// a stray (shard_table::has_strays), they are taken in the order of their starts.
///
/// Due waits stay in their shards until they begin, where a cancel finds them. Every thread of the
/// context takes the next wait. This class only says where it is: it is a heap of what is known of
/// each shard's first wait. The first wait may be gone by now, so a shard may come later than it
/// seems, never earlier. A shard gets its right place when it is in front.
///
/// Its owner's lock is taken before the shards' locks.
class due_shards {
public:
  explicit due_shards(const shard_table& shards) noexcept : shards_(shards) {}

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Something is due in `sh`.
  void add(shard& sh) noexcept;

  /// Locks the shard with the next wait, applies its cancels, and says which it is. Returns false
  /// if nothing is due.
  [[nodiscard]] bool lock_first(shard*& first) noexcept ASIO_WHEEL_TRY_ACQUIRE(true, first);

  /// Nothing is due any more in the shard that lock_first() has returned.
  void drop_first() noexcept;

  /// The shards were rewound, so their first waits may come earlier than known: sorts them anew.
  void rewound() noexcept;

private:
  struct source {
    due_key first;  ///< not after the shard's first wait
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
