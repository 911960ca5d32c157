// L2 service: the shards of a wheel, made when threads need them, and which is due next.
#pragma once

#include <asio_wheel/wheel_options.hpp>

#include "../ground/locks.hpp"
#include "../wheel/timing_wheel.hpp"
#include "posting.hpp"
#include "shard.hpp"
#include "wheel_clock.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <typeinfo>

namespace asio_wheel::detail {

class wheel_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// A shard as its waits and timers see it: with the way to the core.
class home final : public shard {
public:
  home(wheel_core& c, std::size_t n, wheel_geometry geometry, const wheel_clock& clock)
    : shard(geometry, clock),
      core(c),
      number(n)
  {}

  wheel_core& core;
  const std::size_t number;  ///< below max_shards
  home* older = nullptr;     ///< the one that was made before this; null if none was

  /// Takes the answer of a wait that was asked for its handler's type (wait_outcome::described);
  /// null if types have no names in this program.
  void describe(const std::type_info* handler) noexcept { described_ = handler; }
  [[nodiscard]] const std::type_info* described() const noexcept { return described_; }

private:
  friend class wheel_core;
  friend class section;

  const std::type_info* described_ = nullptr;
  delivery ended_delivery_;  ///< of the waits that have ended
};

/// The homes of a wheel. Each is made when a thread first needs it: those that none needs cost
/// neither memory nor a look.
class homes {
public:
  /// Makes one, so that there is always one. Throws std::bad_alloc.
  homes(wheel_core& c, const wheel_options& options, const wheel_clock& clock);
  homes(const homes&) = delete;
  homes& operator=(const homes&) = delete;
  ~homes();

  /// Where this thread starts its waits. Without memory for a new home, one that another thread
  /// uses.
  [[nodiscard]] home& local() noexcept;

  /// A wait is about to be filed at `h`, which is locked, by this thread, whose own home that may
  /// not be.
  void note_start(const home& h) noexcept;

  /// Whether a thread has ever started a wait elsewhere than at its own home. To be asked with the
  /// lock of a home, and so told of all starts before the latest there.
  [[nodiscard]] bool has_strays() const noexcept
  {
    return has_strays_.load(std::memory_order_relaxed);
  }

  /// The one that was made last; home::older leads to all others. Whoever makes one and then asks
  /// for a wake-up is seen by the pass, or sees it (driver.hpp).
  [[nodiscard]] home* latest() const noexcept;

  [[nodiscard]] home& operator[](std::size_t number) const noexcept;

  /// What is made from here on is closed already.
  void close() noexcept;

  // Lock all of them. None is made meanwhile.

  void lock() noexcept;
  void unlock() noexcept;

private:
  [[nodiscard, gnu::noinline, gnu::cold]] home& make_or_share(std::size_t number) noexcept;
  home& make(std::size_t number);

  wheel_core& core_;
  const wheel_geometry geometry_;
  const wheel_clock& clock_;

  /// What it leaves of a thread's number is that of the thread's home, and of a negative one that
  /// of none.
  const std::ptrdiff_t mask_;

  std::atomic<bool> has_strays_{false};

  spin_lock making_;  ///< guards the following; taken before the homes' locks
  bool closed_ = false;
  std::atomic<home*> latest_{nullptr};
  std::array<std::atomic<home*>, max_shards> of_number_{};
};

/// The shards in which waits are due, first the one whose first wait comes before those of all
/// others.
///
/// By tick, that is. As long as all waits of a thread are in one shard, nobody can tell in which
/// order those of a tick are taken from different shards, so they are taken shard by shard. Once
/// there is a stray (homes::has_strays), they are taken in the order of their starts.
///
/// Waits that are due stay in their shards until they begin, where whoever cancels them finds them,
/// and every thread of the context takes the next one. Here is only where that is: a heap of what
/// is known of each shard's first wait. That wait may be gone by now, so the shard may come later
/// than it seems, never earlier. It finds its place when it is in front.
///
/// Guarded by the lock of its owner, which is taken before those of the shards.
class due_shards {
public:
  explicit due_shards(const homes& shards) noexcept : homes_(shards) {}

  [[nodiscard]] bool empty() const noexcept;

  /// Something is due in that shard.
  void add(home& h) noexcept;

  /// Locks the shard whose first wait comes next, and returns it; null if nothing is due.
  [[nodiscard]] home* lock_first() noexcept;

  /// Nothing is due any more in the shard that lock_first() has returned.
  void drop_first() noexcept;

  /// The shards were rewound, so their first waits may come earlier than is known: each is to find
  /// its place anew.
  void rewound() noexcept;

private:
  struct source {
    due_key first;  ///< not after that of the shard's first wait
    home* at;
  };
  [[nodiscard]] static bool comes_later(const source& a, const source& b) noexcept
  {
    return b.first < a.first;
  }

  const homes& homes_;
  std::size_t size_ = 0;
  std::uint64_t is_here_ = 0;  ///< a bit for each shard
  std::array<source, max_shards> heap_;
};

}  // namespace asio_wheel::detail
