// L3 roof: tasks, found by the hashes of their keys.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/memory.hpp>
#include <asio_wheel/detail/roof/scheduled_task.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace asio_wheel::detail {

/// A key's hash for the table, whose buckets go by the highest bits.
using key_hash = std::uint32_t;

/// Made of what `Hash` returns, which may well be the key itself.
[[nodiscard]] constexpr key_hash key_hash_of(std::size_t hash) noexcept
{
  const std::uint64_t product = std::uint64_t{hash} * 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  return static_cast<key_hash>(product >> 32);
}

/// Tasks by the hashes of their keys. Owns none of them.
///
/// With a million tasks every cache line is a miss. A search reads one line of the table, most
/// often, and then the task. A **bucket** is such a line: five tasks and their hashes. A task whose
/// bucket is full goes to the next bucket with a free place, and those that it passes count it. A
/// search ends at the first bucket that no task has passed.
///
/// The table grows without a look at the tasks, because it has their hashes. Buckets are in the
/// order of the hashes, so growing reads and writes from front to back.
///
/// Thread safety: only prefetch() may be called at any time.
class ASIO_WHEEL_EXPORT task_table {
public:
  task_table() = default;
  task_table(task_table&& other) noexcept;
  task_table& operator=(task_table&&) = delete;
  ~task_table();

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Asks for the bucket that find() will read. The table may be growing: a prefetch does not mind
  /// a wrong address.
  void prefetch(key_hash hash) const noexcept
  {
    const auto first = reinterpret_cast<std::uintptr_t>(buckets_.load(std::memory_order_relaxed));
    const std::uintptr_t address = first + index(hash, count()) * sizeof(bucket);
    detail::prefetch(reinterpret_cast<const void*>(address));
  }

  /// The task with that hash for which `is(task)` holds; null if there is none. Throws what `is`
  /// throws.
  template <class Is>
  [[nodiscard]] scheduled_task* find(key_hash hash, Is is) const
  {
    std::size_t i = index(hash, count());
    for (std::size_t left = count(); left != 0; --left, i = after(i)) {
      const bucket& b = at(i);
      for (std::size_t k = 0; k != b.tasks.size(); ++k) {
        scheduled_task* const t = b.tasks[k];
        if (t && b.hashes[k] == hash && is(*t)) return t;
      }
      if (b.passed == 0) break;
    }
    return nullptr;
  }

  /// Makes room for one more task. Throws std::bad_alloc, with nothing changed.
  void make_room()
  {
    if (size_ == most_per_bucket * count()) grow();
  }

  /// Requires room.
  void insert(key_hash hash, scheduled_task& t) noexcept;

  /// Requires that it is here.
  void erase(key_hash hash, scheduled_task& t) noexcept;

  template <class Function>
  void for_each(Function f) const
  {
    for (std::size_t i = 0; i != count(); ++i) {
      for (scheduled_task* const t : at(i).tasks)
        if (t) f(*t);
    }
  }

private:
  static constexpr std::size_t line = 64;
  static constexpr std::size_t most_per_bucket = 4;  ///< on average

  struct alignas(line) bucket {
    std::array<key_hash, 5> hashes;
    std::uint32_t passed;  ///< tasks that are further on because this was full
    std::array<scheduled_task*, 5> tasks;
  };
  static_assert(sizeof(bucket) == line);

  [[nodiscard]] static std::size_t index(key_hash hash, std::size_t count) noexcept
  {
    return static_cast<std::size_t>(std::uint64_t{hash} * count >> 32);
  }
  [[nodiscard]] std::size_t count() const noexcept
  {
    return count_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t after(std::size_t i) const noexcept
  {
    return i + 1 == count() ? 0 : i + 1;
  }
  [[nodiscard]] bucket& at(std::size_t i) const noexcept
  {
    return buckets_.load(std::memory_order_relaxed)[i];
  }

  void put(key_hash hash, scheduled_task& t) noexcept;
  void grow();

  std::atomic<bucket*> buckets_{nullptr};
  std::atomic<std::size_t> count_{0};  ///< of the buckets
  std::size_t size_ = 0;
};

}  // namespace asio_wheel::detail
