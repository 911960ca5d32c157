// L2 service: recycled memory for waits, in three tiers: thread, process, system.
#include <asio_wheel/detail/service/op_memory.hpp>

#include <asio_wheel/detail/ground/locks.hpp>
#include <asio_wheel/detail/service/page_supply.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace asio_wheel::detail {
namespace {

constexpr std::size_t batch_size = 64;  // blocks that move between a thread and the depot at once

/// A free block. In the depot the first block of a batch also holds the batch's length and the next
/// batch; elsewhere these two are not set.
struct block {
  block* next;
  block* next_batch;
  std::size_t length;
};
static_assert(sizeof(block) <= op_line);

/// A thread's free blocks of one size, from which it mostly allocates without a lock.
struct magazine {
  block* first;
  std::size_t room;  ///< for so many more; none before the first use and after the last

  static constexpr std::size_t capacity = 2 * batch_size;
};

/// The process's free blocks of one size, in batches that threads did not need.
class depot {
public:
  /// A batch of at most batch_size blocks of `size` bytes.
  block* take(std::size_t size)
  {
    {
      const std::lock_guard lock(mutex_);
      if (block* const batch = batches_) {
        batches_ = batch->next_batch;
        return batch;
      }
    }
    auto* const page = static_cast<std::byte*>(page_supply::instance().take());
    const std::size_t length = std::min(page_size / size, batch_size);
    block* first = nullptr;
    for (std::size_t i = length; i-- > 0;)
      first = ::new (page + i * size) block{first, nullptr, length - i};
    return first;
  }

  void give_back(block& batch, std::size_t length) noexcept
  {
    const std::lock_guard lock(mutex_);
    batch.next_batch = batches_;
    batch.length = length;
    batches_ = &batch;
  }

  /// Adds the block to the first batch, or starts a batch with it when that one is full.
  void give_back_one(block& b) noexcept
  {
    const std::lock_guard lock(mutex_);
    if (block* const rest = batches_; rest && rest->length < batch_size)
      b = {rest, rest->next_batch, rest->length + 1};
    else
      b = {nullptr, rest, 1};
    batches_ = &b;
  }

  /// Gives the pages of which nothing is used back to the supply.
  void release(std::size_t size) noexcept
  {
    block* batch = nullptr;
    {
      const std::lock_guard lock(mutex_);
      batch = std::exchange(batches_, nullptr);
    }
    free_blocks all;
    while (batch) {
      block* const next_batch = batch->next_batch;
      for (block* b = batch; b;) {
        block* const next = b->next;
        all.push_front(*::new (b) free_block);
        b = next;
      }
      batch = next_batch;
    }
    free_blocks pages = all.take_pages(size);
    while (free_block* const page = pages.pop_front()) page_supply::instance().give_back(page);
    while (free_block* const b = all.pop_front()) give_back_one(*::new (b) block);
  }

private:
  spin_lock mutex_;
  block* batches_ = nullptr;
};

constinit std::array<depot, most_recycled_lines> depots{};
constinit thread_local std::array<magazine, most_recycled_lines> magazines{};

// GCC's MinGW frees a thread's thread_local memory, and only then calls the destructors of what was
// in it. They cannot empty the magazines, so each thread uses the depot from its start.
#if defined(__MINGW32__) && !defined(__clang__)
constexpr bool has_magazines = false;
#else
constexpr bool has_magazines = true;
#endif

/// Whether the thread has emptied its magazines for good. Objects that are destroyed later, such as
/// a thread_local context, use the depot directly. Not a member of thread_end, because it outlives
/// that.
constinit thread_local bool has_ended = !has_magazines;

/// Moves the first `n` blocks of a magazine to its depot; n <= batch_size.
void unload(std::size_t lines, std::size_t n) noexcept
{
  magazine& m = magazines[lines - 1];
  block* const batch = m.first;
  block* last = batch;
  for (std::size_t i = 1; i < n; ++i) last = last->next;
  m.first = std::exchange(last->next, nullptr);
  m.room += n;
  depots[lines - 1].give_back(*batch, n);
}

/// Empties the magazines of this thread.
void unload_all() noexcept
{
  for (std::size_t lines = 1; lines <= most_recycled_lines; ++lines) {
    magazine& m = magazines[lines - 1];
    while (m.first) unload(lines, std::min(magazine::capacity - m.room, batch_size));
    m.room = 0;
  }
}

/// Empties the magazines when their thread ends.
struct thread_end {
  /// Makes sure that the destructor will run.
  void await() const noexcept {}

  ~thread_end()
  {
    has_ended = true;
    unload_all();
  }
};
thread_local thread_end this_thread_end;

/// Fills the empty magazine and takes a block from it.
[[gnu::noinline, gnu::cold]] void* allocate_from_depot(std::size_t lines)
{
  if (!has_ended) this_thread_end.await();
  depot& d = depots[lines - 1];
  block* const batch = d.take(lines * op_line);
  block* const rest = batch->next;
  const std::size_t length = batch->length - 1;
  if (!has_ended)
    magazines[lines - 1] = {rest, magazine::capacity - length};
  else if (rest)
    d.give_back(*rest, length);
  return batch;
}

/// Makes room in a magazine that has none, and puts a block into it.
[[gnu::noinline, gnu::cold]] void deallocate_to_full(void* p, std::size_t lines) noexcept
{
  block* const b = ::new (p) block;
  if (has_ended) return depots[lines - 1].give_back_one(*b);
  this_thread_end.await();
  magazine& m = magazines[lines - 1];
  if (m.first)
    unload(lines, batch_size);
  else
    m.room = magazine::capacity;
  b->next = m.first;
  m = {b, m.room - 1};
}

// Lets AddressSanitizer see each wait come and go.
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

void* allocate_recycled_op(std::size_t lines)
{
  if (!recycle) return ::operator new (lines* op_line, std::align_val_t{op_line});
  magazine& m = magazines[lines - 1];
  block* const b = m.first;
  if (!b) return allocate_from_depot(lines);
  m = {b->next, m.room + 1};
  return b;
}

void deallocate_recycled_op(void* p, std::size_t lines) noexcept
{
  if (!recycle) return ::operator delete (p, std::align_val_t{op_line});
  magazine& m = magazines[lines - 1];
  if (m.room == 0) return deallocate_to_full(p, lines);
  block* const b = ::new (p) block;
  b->next = m.first;
  m = {b, m.room - 1};
}

void release_recycled_ops() noexcept
{
  unload_all();
  for (std::size_t lines = 1; lines <= most_recycled_lines; ++lines)
    depots[lines - 1].release(lines * op_line);
}

}  // namespace asio_wheel::detail
