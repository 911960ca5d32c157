// L2 service: recycled memory for waits, in three tiers: thread, process, system.
#include <asio_wheel/service/op_memory.hpp>

#include <asio_wheel/ground/spin_lock.hpp>
#include <asio_wheel/service/huge_pages.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace asio_wheel {
namespace {

constexpr std::size_t line = 64;           // the unit of sizes, and their alignment
constexpr std::size_t largest = 8 * line;  // of the waits that are recycled
constexpr std::size_t batch_size = 64;     // blocks that go between a thread and the depot at once

/// A free block. The first of a batch in the depot links the batches, too.
struct block {
  block* next;
  block* next_batch;
};

/// What a thread keeps of one size, so that it mostly allocates without a lock.
struct magazine {
  block* first;
  std::size_t count;
};

/// What the process keeps of one size: batches that threads had to spare, and a slab to cut new
/// ones from. Memory does not go back to the system; a process that once had a million waits
/// pending is taken to have them again.
class depot {
public:
  /// A list of batch_size blocks of `size` bytes.
  block* take(std::size_t size)
  {
    std::byte* fresh = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (block* batch = batches_) {
        batches_ = batch->next_batch;
        return batch;
      }
      fresh = cut(size * batch_size);
    }
    block* first = nullptr;
    for (std::size_t i = batch_size; i-- > 0;)
      first = ::new (fresh + i * size) block{first, nullptr};
    return first;
  }

  void give_back(block& batch) noexcept
  {
    const std::lock_guard lock(mutex_);
    batch.next_batch = batches_;
    batches_ = &batch;
  }

private:
  std::byte* cut(std::size_t size)
  {
    if (size > slab_left_) {
      next_slab_ = std::max(next_slab_, size);
      slab_ = static_cast<std::byte*>(huge_page_resource().allocate(next_slab_, line));
      slab_left_ = next_slab_;
      next_slab_ = std::min(2 * next_slab_, largest_slab);
    }
    slab_left_ -= size;
    return std::exchange(slab_, slab_ + size);
  }

  static constexpr std::size_t largest_slab = std::size_t{8} << 20;

  spin_lock mutex_;
  block* batches_ = nullptr;
  std::byte* slab_ = nullptr;
  std::size_t slab_left_ = 0;
  std::size_t next_slab_ = std::size_t{64} << 10;
};

constexpr std::size_t classes = largest / line;
constinit std::array<depot, classes> depots{};
constinit thread_local std::array<magazine, classes> magazines{};

std::size_t class_of(std::size_t size) noexcept
{
  return (size - 1) / line;
}

/// Hands the first `n` blocks of a magazine to its depot; n <= batch_size.
[[gnu::noinline, gnu::cold]] void unload(std::size_t size_class, std::size_t n) noexcept
{
  magazine& m = magazines[size_class];
  block* const batch = m.first;
  block* last = batch;
  for (std::size_t i = 1; i < n; ++i) last = last->next;
  m.first = std::exchange(last->next, nullptr);
  m.count -= n;
  depots[size_class].give_back(*batch);
}

/// Empties the magazines when their thread ends.
struct thread_end {
  /// A first use makes sure that the destructor will run.
  void await() const noexcept {}

  ~thread_end()
  {
    for (std::size_t c = 0; c < classes; ++c) {
      while (magazines[c].count > 0) unload(c, std::min(magazines[c].count, batch_size));
    }
  }
};
thread_local thread_end this_thread_end;

/// Fills an empty magazine and takes a block from it.
[[gnu::noinline, gnu::cold]] void* allocate_from_depot(std::size_t size_class)
{
  this_thread_end.await();
  block* const batch = depots[size_class].take((size_class + 1) * line);
  magazine& m = magazines[size_class];
  // A batch from a thread that ended may be shorter.
  for (const block* b = m.first = batch->next; b; b = b->next) ++m.count;
  return batch;
}

// AddressSanitizer is to see each wait come and go.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool recycle = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool recycle = false;
#else
constexpr bool recycle = true;
#endif
#else
constexpr bool recycle = true;
#endif

}  // namespace

void* allocate_op(std::size_t size)
{
  if (!recycle || size > largest) return ::operator new(size);
  const std::size_t c = class_of(size);
  magazine& m = magazines[c];
  block* const b = m.first;
  if (!b) return allocate_from_depot(c);
  m = {b->next, m.count - 1};
  return b;
}

void deallocate_op(void* p, std::size_t size) noexcept
{
  if (!recycle || size > largest) return ::operator delete(p);
  const std::size_t c = class_of(size);
  magazine& m = magazines[c];
  if (m.count == 0) this_thread_end.await();
  m = {::new (p) block{m.first, nullptr}, m.count + 1};
  if (m.count >= 2 * batch_size) unload(c, batch_size);
}

}  // namespace asio_wheel
